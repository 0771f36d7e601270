package bootstrap

import (
	"strings"
	"testing"
)

func TestCheckSkew(t *testing.T) {
	cases := map[string]struct {
		kubelet, apiServer string
		want               Skew
		says               string
	}{
		"the same":                     {"1.36.3", "v1.36.3", Supported, ""},
		"a newer patch":                {"1.36.9", "v1.36.3", Supported, ""},
		"with a v":                     {"v1.35.0", "v1.36.3", Supported, ""},
		"three behind":                 {"1.33.0", "v1.36.3", Supported, ""},
		"four behind":                  {"1.32.9", "v1.36.3", TooOld, "use 1.33 to 1.36"},
		"a seed of 2019":               {"1.13.3", "v1.36.3", TooOld, "1.13.3"},
		"one ahead":                    {"1.37.0", "v1.36.3", TooNew, "use 1.33 to 1.36"},
		"a major ahead":                {"2.0.0", "v1.36.3", TooNew, "newer than the API server"},
		"an API server with a vendor":  {"1.34.0", "v1.34.1+vendor.2", Supported, ""},
		"a pre-release of the kubelet": {"1.37.0-alpha.1", "v1.36.3", TooNew, "1.37.0-alpha.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, words, err := CheckSkew(tc.kubelet, tc.apiServer)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want || !strings.Contains(words, tc.says) || (words == "") != (tc.want == Supported) {
				t.Errorf("CheckSkew(%s, %s) = %s, %q; want %s and words that hold %q", tc.kubelet, tc.apiServer, got, words, tc.want, tc.says)
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
