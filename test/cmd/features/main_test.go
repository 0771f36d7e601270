package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const list = `# Features
| id | behaviour |
| --- | --- |
| ROL1 | rolls |
| ROL2 | recreates |
| SET1 | chooses |
`

func TestFeatures(t *testing.T) {
	for _, tc := range []struct {
		name, log, want, err string
	}{
		{
			name: "the last result of a test counts, tables and others do not",
			log: `{"Action":"start","Package":"m/e2e"}
{"Action":"fail","Package":"m/e2e","Test":"TestROL1_Rolls"}
{"Action":"pass","Package":"m/e2e","Test":"TestROL1_Rolls"}
{"Action":"skip","Package":"m/set","Test":"TestSET1_Order"}
{"Action":"pass","Package":"m/set","Test":"TestSET1_Order/newest"}
{"Action":"pass","Package":"m/set","Test":"TestOthers"}
`,
			want: "ROL1 e2e.TestROL1_Rolls pass\nROL2 no test yet\nSET1 set.TestSET1_Order skip\n2 of 3 behaviours have a test\n",
		}, {
			name: "a failed test fails",
			log:  `{"Action":"fail","Package":"m/e2e","Test":"TestROL2_Recreates"}` + "\n",
			want: "ROL1 no test yet\nROL2 e2e.TestROL2_Recreates fail\nSET1 no test yet\n1 of 3 behaviours have a test\n",
			err:  "e2e.TestROL2_Recreates failed",
		}, {
			name: "an id that is not listed",
			log:  `{"Action":"pass","Package":"m/e2e","Test":"TestROL9_Nonsense"}` + "\n",
			want: "ROL1 no test yet\nROL2 no test yet\nSET1 no test yet\n0 of 3 behaviours have a test\n",
			err:  "shows ROL9",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			ids, log := filepath.Join(dir, "features.md"), filepath.Join(dir, "e2e.json")
			for path, text := range map[string]string{ids: list, log: tc.log} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := run(&out, ids, []string{log})
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			var lines []string
			for line := range strings.Lines(out.String()) {
				lines = append(lines, strings.Join(strings.Fields(line), " ")+"\n")
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
