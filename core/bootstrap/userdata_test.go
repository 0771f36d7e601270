package bootstrap

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestLIFE2_PlaceholdersOfOwnUserData(t *testing.T) {
	for name, c := range map[string]struct {
		data, want string
		needsToken bool
	}{
		"nothing to replace":    {"#!/bin/sh\necho <<EOF", "#!/bin/sh\necho <<EOF", false},
		"the name":              {"hostname: <<MACHINE_NAME>>", "hostname: worker-1", false},
		"the token, twice":      {"<<BOOTSTRAP_TOKEN>>/<<BOOTSTRAP_TOKEN>>", token + "/" + token, true},
		"URL-encoded":           {"data:,%3C%3CBOOTSTRAP_TOKEN%3E%3E%0A%3C%3CMACHINE_NAME%3E%3E", "data:," + token + "%0Aworker-1", true},
		"URL-encoded otherwise": {"data:,%3c%3cBOOTSTRAP_TOKEN%3e%3e", "data:," + token, true},
		"no text":               {"\x00\xff<<MACHINE_NAME>>\xfe", "\x00\xffworker-1\xfe", false},
		"half a placeholder":    {"<<BOOTSTRAP_TOKEN>", "<<BOOTSTRAP_TOKEN>", false},
	} {
		t.Run(name, func(t *testing.T) {
			own, err := ReadUserData(map[string][]byte{"value": []byte(c.data)}, DataSecretKey, UserDataKey)
			if err != nil {
				t.Fatal(err)
			}
			got, err := own.Render(worker(), 0, token)
			if err != nil || string(got) != c.want || own.NeedsToken() != c.needsToken {
				t.Errorf("%q, %v, needs a token: %t", got, err, own.NeedsToken())
			}
		})
	}
}

func TestLIFE2_KeysOfOwnUserData(t *testing.T) {
	for name, c := range map[string]struct {
		secret map[string][]byte
		want   string
		wrong  bool
	}{
		"the first key wins": {map[string][]byte{"value": []byte("a"), "userData": []byte("b")}, "a", false},
		"the second":         {map[string][]byte{"userData": []byte("b")}, "b", false},
		"neither":            {map[string][]byte{"data": []byte("c")}, "", false},
		"an empty one":       {map[string][]byte{"value": []byte("\n"), "userData": []byte("b")}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			own, err := ReadUserData(c.secret, DataSecretKey, UserDataKey)
			if (err != nil) != c.wrong || (own == nil) != (c.want == "") || own != nil && string(own.Bytes()) != c.want {
				t.Errorf("%+v, %v", own, err)
			}
			if own == nil && !own.NeedsToken() {
				t.Error("a machine whose user data is rendered needs no token")
			}
		})
	}
}

// TestLIFE2_OwnUserDataIsHeldToTheLimit: it is compressed where the machine reads that.
func TestLIFE2_OwnUserDataIsHeldToTheLimit(t *testing.T) {
	noise := make([]byte, 4<<10)
	_, _ = rand.Read(noise)
	long := strings.Repeat("# the same line\n", 500)
	config := func(source string) string {
		data, err := json.Marshal(ignition{
			Ignition: ignitionHeader{Version: ignitionVersion},
			Storage:  ignitionStorage{Files: []ignitionFile{{Path: "/etc/x", Contents: ignitionContents{Source: source}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	ubuntu, flatcar := clusterv1alpha1.OperatingSystemUbuntu, clusterv1alpha1.OperatingSystemFlatcar
	for name, c := range map[string]struct {
		system clusterv1alpha1.OperatingSystem
		data   string
		begins string
	}{
		"short":                       {ubuntu, "#cloud-config\n", "#cloud-config\n"},
		"long":                        {ubuntu, "#cloud-config\n" + long, "\x1f\x8b"},
		"long and full of noise":      {ubuntu, base64.StdEncoding.EncodeToString(noise), ""},
		"long and compressed already": {ubuntu, "\x1f\x8b" + long, ""},
		"long for Ignition":           {flatcar, config("data:," + strings.ReplaceAll(long, "\n", "%0A")), `{"ignition":{"config":{"replace"`},
		"long and not for Ignition":   {flatcar, "#cloud-config\n" + long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := worker()
			m.Spec.ProviderSpec.Value.OperatingSystem = c.system
			own := &UserData{value: []byte(c.data)}
			got, err := own.Render(m, 2000, "")
			switch {
			case c.begins == "" && (err == nil || !strings.Contains(err.Error(), "at most 2000 are possible")):
				t.Errorf("%d bytes, %v", len(got), err)
			case c.begins != "" && (err != nil || len(got) > 2000 || !strings.HasPrefix(string(got), c.begins)):
				t.Errorf("%.40q, %v", got, err)
			}
		})
	}
}
