package wire

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	consoleToken  = "0a1b2c.0123456789abcdef"
	consoleSecret = "c4nary-in-the-cloud"
	consoleHidden = "c4nary-in-the-user-data"
)

func consoleRequest() *driverv1alpha1.GetConsoleOutputRequest {
	return &driverv1alpha1.GetConsoleOutputRequest{Provider: &driverv1alpha1.ProviderContext{
		Secrets: map[string][]byte{"password": []byte(consoleSecret)},
	}}
}

func TestConsoleLines(t *testing.T) {
	numbered := func(from, to int) (lines []string) {
		for n := from; n <= to; n++ {
			lines = append(lines, "line "+strings.Repeat("x", n))
		}
		return lines
	}
	for name, tc := range map[string]struct {
		output string
		want   []string
	}{
		"nothing":                     {"", nil},
		"nothing but control":         {"\x00\r\n\x07\x1b[2J \r\n", nil},
		"lines as a serial line has":  {"Linux\r\n\r\nlogin: ", []string{"Linux", "login:"}},
		"the last of many":            {strings.Join(numbered(1, 50), "\n"), numbered(31, 50)},
		"colours":                     {"\x1b[0;1;31m[FAILED]\x1b[0m kubelet\n", []string{"[FAILED] kubelet"}},
		"a title and a charset":       {"\x1b]0;root@vm\x07\x1b(Bready\n", []string{"ready"}},
		"an escape that breaks off":   {"ready\n\x1b[", []string{"ready"}},
		"a bar that is written anew":  {"10%\r50%\r100%\n", []string{"100%"}},
		"a service that fails anew":   {"[1.5] disk full\n[2.0] failed\n[12.5] failed\nlogin:\n", []string{"[1.5] disk full", "[12.5] failed", "login:"}},
		"no UTF-8":                    {"k\xffs\xc3\xa9\n", []string{"k\uFFFDsé"}},
		"text that turns around":      {"a\u202eb\n", []string{"a b"}},
		"a token":                     {"token: " + consoleToken + "\n", []string{"token: [redacted]"}},
		"a token in a word":           {"x" + consoleToken + "y\n", []string{"x[redacted]y"}},
		"a token in colours":          {"0a1b2c\x1b[1m.0123\x1b[0m456789abcdef\n", []string{"[redacted]"}},
		"a secret":                    {"login " + consoleSecret + " failed\n", []string{"login [redacted] failed"}},
		"a hidden secret":             {"passwd: " + consoleHidden + " is weak\n", []string{"passwd: [redacted] is weak"}},
		"a secret in colours":         {"c4nary\x1b[1m-in-the\x1b[0m-cloud\n", []string{"[redacted]"}},
		"a secret with a bell in it":  {"c4nary\x07-in-the-cloud\n", []string{"[redacted]"}},
		"a secret that is cut off":    {"c4nary-in-the-cl\n", []string{"[redacted]"}},
		"a secret where a line ends":  {strings.Repeat("x", maxConsoleLine-8) + consoleSecret, []string{strings.Repeat("x", maxConsoleLine-8) + "[reda…"}},
		"a long line":                 {strings.Repeat("x", 2*maxConsoleLine), []string{strings.Repeat("x", maxConsoleLine-3) + "…"}},
		"a first line that is half":   {"in-the-cloud" + strings.Repeat(" ", contract.MaxConsoleBytes) + "\nlogin:", []string{"login:"}},
		"one line that is everything": {strings.Repeat("x", contract.MaxConsoleBytes), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ConsoleLines(consoleRequest(), []byte(tc.output), []byte("password: "+consoleHidden)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzConsoleLines prints what a VM may print, with a token and a secret in it.
func FuzzConsoleLines(f *testing.F) {
	f.Add([]byte("Linux\r\n\x1b[0m"), []byte("\x1b[1mlogin: \xff\x00"))
	f.Add([]byte("\x1b]0;"), []byte("\x07"))
	f.Add([]byte("a\u202e\u2028"), []byte("\r\r\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		output := fmt.Appendf(nil, "%s\n%s %s\n%s", before, consoleToken, consoleSecret, after)
		lines := ConsoleLines(consoleRequest(), output)
		if len(lines) > MaxConsoleLines {
			t.Errorf("%d lines", len(lines))
		}
		text := strings.Join(lines, "")
		if strings.Contains(text, consoleToken) || strings.Contains(text, consoleSecret) {
			t.Errorf("a secret is left in %q", lines)
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not fit for people: %q", lines)
		}
		for _, line := range lines {
			if line == "" || len(line) > maxConsoleLine {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
	})
}
