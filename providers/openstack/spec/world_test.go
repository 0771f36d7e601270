package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

const (
	operatorEndpoint = "https://keystone.example.com:5000/v3"
	otherEndpoint    = "https://keystone.example.org:5000/v3"
	operatorPassword = "operator's password"
)

// operator is an environment that has all that is needed.
func operator() Environment {
	return Environment{Account: Account{
		IdentityEndpoint: operatorEndpoint, Region: "dbl", Interface: InterfaceInternal,
		Username: "operator", Password: operatorPassword, UserDomainName: "ops", ProjectName: "infra", ProjectDomainName: "ops",
		CACert: certificate,
	}}
}

// operated is what an account is that has all from the operator.
func operated(change ...func(*Account)) Account {
	a := operator().Account
	a.CACert = strings.TrimSpace(a.CACert)
	for _, c := range change {
		c(&a)
	}
	return a
}

// with returns the least spec, changed by the fields of a JSON object.
func with(t testing.TB, changes string) []byte {
	t.Helper()
	spec := map[string]json.RawMessage{"flavor": json.RawMessage(`"m1.small"`), "image": json.RawMessage(`"noble"`)}
	var changed map[string]json.RawMessage
	if err := json.Unmarshal([]byte(changes), &changed); err != nil {
		t.Fatalf("%s: %v", changes, err)
	}
	maps.Copy(spec, changed)
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// secretsOf returns secrets as core gives them.
func secretsOf(texts map[string]string) map[string][]byte {
	secrets := map[string][]byte{}
	for name, text := range texts {
		secrets[name] = []byte(text)
	}
	return secrets
}

// wrongFields returns the fields that an error names, and its reason.
func wrongFields(t testing.TB, err error) (fields, reason string) {
	t.Helper()
	var names []string
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				if v.GetDescription() == "" {
					t.Errorf("%s: nothing is said about it", v.GetField())
				}
				names = append(names, v.GetField())
			}
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
		}
	}
	return strings.Join(names, " "), reason
}

// violated returns the fields that Validate names.
func violated(raw []byte, secrets map[string][]byte, env Environment) string {
	var names []string
	for _, v := range Validate(raw, secrets, env) {
		names = append(names, v.GetField())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// certificate is some CA's.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBdjCCARugAwIBAgIUIb/5PHJ419yEC/+LOis8h9iPTAwwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEY2EtYTAgFw0yNjExMjIxMDE2MjlaGA8yMTI2MTAyOTEwMTYy
OVowDzENMAsGA1UEAwwEY2EtYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDEY
ks/1agBjsQH9th8DGWYsVJ5sDLTQyHw22PZsmhlo+atUjM3E0zFfDZ+gCP2rRKpy
SUW0nSyWol/zpzfFP5CjUzBRMB0GA1UdDgQWBBTdD6dhLrL9hkMWQc4UJD1L0pCA
eTAfBgNVHSMEGDAWgBTdD6dhLrL9hkMWQc4UJD1L0pCAeTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0kAMEYCIQDxZb4cqpkZRDKas+uTa/Ael4UK3kQhb3IO
ZhUemHSoBgIhALH8A/+WeS5kDZQJ1R0Rj3yWM4yfC+A30Og2vYVhwloS
-----END CERTIFICATE-----
`

// otherCertificate is another CA's.
const otherCertificate = `-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUZJHliLy6iwFWDie/rgJNgCF+GswwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEY2EtYjAgFw0yNjExMjIxMDE2MjlaGA8yMTI2MTAyOTEwMTYy
OVowDzENMAsGA1UEAwwEY2EtYjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABErb
S1z7hP/ZW/cWnhCoh3WN2mkeukIAhzsX97TD00PK5mTIVexFlt79EBr6/WoAn0Xu
J/TIIFngo1BxRaa0W22jUzBRMB0GA1UdDgQWBBQ626zJAxL4+j0Q012oKtYsrOTE
/DAfBgNVHSMEGDAWgBQ626zJAxL4+j0Q012oKtYsrOTE/DAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQC1g3ti0u/hWJXi9C0R04vcKhaS6nx8K3bi
hHqmNhSHCAIgTYyHKueqkPbHmEmo8i3qJXYarvxf1R9w6rtxHd9GgFM=
-----END CERTIFICATE-----
`
