package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/status"
)

// FuzzRead gives any spec, any secrets and any clouds.yaml: nothing panics, the same is read the
// same, errors have details, and what can be read is found right.
func FuzzRead(f *testing.F) {
	for _, raw := range []string{
		metakubeOld, metakubeNew, `{}`, `{"flavor":"f","image":"i","tags":["a",1],"rootDiskSizeGB":"25","configDrive":"true"}`,
		`{"flavor":"f","image":"i","ports":[{"id":"x"},{"network":"n","fixedIPs":[{"ipAddress":"::1"}],"profile":{"trustedVF":true}}]}`,
		`{"flavor":"f","image":"i","additionalBlockDevices":[{"name":"a","sizeGiB":1e3,"storage":{"volume":{"type":"t"}}}]}`,
		`{"flavor":"f","image":"i","identityEndpoint":"https://[::1]:5000/v3","username":"u","password":"p","caCert":"-----BEGIN"}`,
	} {
		f.Add([]byte(raw), "password", []byte("secret"), []byte(aCloudsYAML))
	}
	f.Add([]byte(`{"flavor":"f","image":"i"}`), "cloud", []byte("one"), []byte(aCloudsYAML))
	f.Add([]byte(`{"flavor":"f","image":"i"}`), "OS_TOKEN", []byte("t"), []byte("clouds: &a {x: {auth: *a}}"))
	f.Fuzz(func(t *testing.T, raw []byte, name string, value, cloudsYAML []byte) {
		secrets := map[string][]byte{"clouds.yaml": cloudsYAML, name: value}
		first, err := Read(raw, secrets, operator())
		second, again := Read(raw, secrets, operator())
		if !reflect.DeepEqual(first, second) || (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("the same is read as %v, %v, then as %v, %v", first, err, second, again)
		}
		found := Validate(raw, secrets, operator())
		account, accountErr := ReadAccount(raw, secrets, operator())
		if err == nil && (len(found) > 0 || accountErr != nil || account != first.Account) {
			t.Errorf("can be read, and is found wrong: %v, %v", found, accountErr)
		}
		if err == nil {
			checkSpec(t, first)
		}
		for _, v := range found {
			if v.GetField() == "" || v.GetDescription() == "" {
				t.Errorf("a finding without words: %v", v)
			}
		}
		if err != nil && len(status.Convert(err).Details()) == 0 {
			t.Errorf("%v has no details", err)
		}
		checkDefault(t, raw)
	})
}

// checkSpec looks for what a Spec promises.
func checkSpec(t *testing.T, s Spec) {
	t.Helper()
	a := s.Account
	if a.Password == operatorPassword && !sameEndpoint(a.IdentityEndpoint, operatorEndpoint) {
		t.Errorf("the operator's password goes to %s", a.IdentityEndpoint)
	}
	if len(a.methods()) != 1 || a.IdentityEndpoint == "" || a.DomainName != "" || a.DomainID != "" || a.Interface == "" || a.normal() != a {
		t.Errorf("the account is not complete and normal: %+q", reflect.ValueOf(a))
	}
	if s.Flavor == "" || s.Image == "" || len(s.Ports) == 0 || len(s.Ports) > MaxPorts || len(s.Tags) > MaxTags || s.RootDisk != nil && s.RootDisk.SizeGB < 1 {
		t.Errorf("the spec is not what it promises: %+v", s)
	}
	for key := range s.Metadata {
		if strings.HasPrefix(strings.ToLower(key), ReservedPrefix) {
			t.Errorf("%s is ours", key)
		}
	}
}

func checkDefault(t *testing.T, raw []byte) {
	t.Helper()
	once, err := Default(raw)
	if err != nil {
		return
	}
	twice, err := Default(once)
	if err != nil || !bytes.Equal(once, twice) || !json.Valid(once) {
		t.Errorf("%s becomes %s, %v", once, twice, err)
	}
}
