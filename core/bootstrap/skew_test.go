package bootstrap

import (
	"strings"
	"testing"
)

func TestCheckSkew(t *testing.T) {
	cases := map[string]struct {
		kubelet, apiServer string
		tooNew, tooOld     string
	}{
		"the same":                     {"1.36.3", "v1.36.3", "", ""},
		"a newer patch":                {"1.36.9", "v1.36.3", "", ""},
		"with a v":                     {"v1.35.0", "v1.36.3", "", ""},
		"three behind":                 {"1.33.0", "v1.36.3", "", ""},
		"four behind":                  {"1.32.9", "v1.36.3", "", "use 1.33 to 1.36"},
		"a seed of 2019":               {"1.13.3", "v1.36.3", "", "1.13.3"},
		"one ahead":                    {"1.37.0", "v1.36.3", "use 1.33 to 1.36", ""},
		"a major ahead":                {"2.0.0", "v1.36.3", "newer than the API server", ""},
		"an API server with a vendor":  {"1.34.0", "v1.34.1+vendor.2", "", ""},
		"a pre-release of the kubelet": {"1.37.0-alpha.1", "v1.36.3", "1.37.0-alpha.1", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tooNew, tooOld, err := CheckSkew(tc.kubelet, tc.apiServer)
			if err != nil {
				t.Fatal(err)
			}
			for got, want := range map[*string]string{&tooNew: tc.tooNew, &tooOld: tc.tooOld} {
				if !strings.Contains(*got, want) || (*got == "") != (want == "") {
					t.Errorf("CheckSkew(%s, %s) = %q, %q; want words that hold %q, %q", tc.kubelet, tc.apiServer, tooNew, tooOld, tc.tooNew, tc.tooOld)
				}
			}
		})
	}
}

func TestCheckSkewNamesWhatItCannotRead(t *testing.T) {
	if _, _, err := CheckSkew("banana", "v1.36.3"); err == nil || !strings.Contains(err.Error(), "spec.versions.kubelet") {
		t.Errorf("a kubelet that is no version: %v", err)
	}
	if _, _, err := CheckSkew("1.36.0", "unknown"); err == nil || !strings.Contains(err.Error(), "API server") {
		t.Errorf("an API server that is no version: %v", err)
	}
}
