package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/sdk"
)

// wrong lists the fields that an error names.
func wrong(err error) string {
	var fields []string
	for _, v := range sdk.FieldViolations(err) {
		fields = append(fields, v.GetField())
	}
	return strings.Join(fields, " ")
}

// A VM keeps its spec: each field that would change is named, and nothing else, also when the spec
// has been to the disk and back.
func TestConflictNamesWhatChanged(t *testing.T) {
	const first = `{"image": "x", "cpus": 1, "forwardedPorts": [{"hostPort": 1, "guestPort": 2}]}`
	for name, tc := range map[string]struct{ have, want, conflict string }{
		"nothing":                  {first, first, ""},
		"a default that is said":   {`{"image": "x"}`, `{"image": "x", "cpus": 2, "memory": "2Gi", "network": {"type": "user"}}`, ""},
		"a protocol that is said":  {first, `{"image": "x", "cpus": 1, "forwardedPorts": [{"hostPort": 1, "guestPort": 2, "protocol": "tcp"}]}`, ""},
		"a list that is empty":     {`{"image": "x"}`, `{"image": "x", "forwardedPorts": []}`, ""},
		"a port":                   {first, `{"image": "x", "cpus": 1, "forwardedPorts": [{"hostPort": 1, "guestPort": 3}]}`, "forwardedPorts"},
		"several":                  {first, `{"image": "y", "cpus": 3, "disk": "1Gi", "network": {"type": "bridge"}}`, "image cpus disk network forwardedPorts"},
		"a kernel and its friends": {`{"image": "x"}`, `{"image": "x", "kernel": "k", "initrd": "i", "kernelArguments": "a", "memory": "1Gi"}`, "kernel initrd kernelArguments memory"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := Read([]byte(tc.have))
			if err != nil {
				t.Fatal(err)
			}
			want, err := Read([]byte(tc.want))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(made)
			if err != nil {
				t.Fatal(err)
			}
			var kept Machine
			if err := json.Unmarshal(raw, &kept); err != nil {
				t.Fatal(err)
			}
			err = kept.Conflict(want)
			if got := wrong(err); got != tc.conflict || (err == nil) != (tc.conflict == "") {
				t.Errorf("the conflict is %q (%v), want %q", got, err, tc.conflict)
			}
		})
	}
}

// Defaults are for fields that are missing or null: what is there is kept, also where it is wrong.
func TestDefaultsAreForWhatIsMissing(t *testing.T) {
	for given, want := range map[string]string{
		`{"image":"x"}`:                                        `{"cpus":2,"image":"x","memory":"2Gi","network":{"type":"user"}}`,
		`{"cpus":0,"network":{},"flavor":1}`:                   `{"cpus":0,"flavor":1,"memory":"2Gi","network":{}}`,
		`{"cpus":1,"memory":null,"network":{"type":"bridge"}}`: `{"cpus":1,"memory":null,"network":{"type":"bridge"}}`,
	} {
		if got, err := Default([]byte(given)); err != nil || string(got) != want {
			t.Errorf("%s becomes %s (%v), want %s", given, got, err, want)
		}
	}
	for _, none := range []string{`null`, `[]`, `{`} {
		if got, err := Default([]byte(none)); wrong(err) != "cloudProviderSpec" {
			t.Errorf("%s becomes %s (%v)", none, got, err)
		}
	}
	for given, fields := range map[string]string{
		`{"image":"x","cpus":null,"memory":null,"network":null}`:   "",
		`{"image":"x","cpus":0,"memory":"","network":{"type":""}}`: "cpus memory network.type",
	} {
		if m, err := Read([]byte(given)); wrong(err) != fields {
			t.Errorf("%s is read as %+v (%v), want %q to be wrong", given, m, err, fields)
		}
	}
}
