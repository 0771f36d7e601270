package sdk_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/sdk"
)

type placement struct {
	Zone string `json:"zone,omitempty"`
}

type network struct {
	ID  string `json:"id"`
	Key string `json:"key,omitempty"`
}

type sawmillSpec struct {
	placement
	Flavor   string            `json:"flavor"`
	Disk     *int              `json:"disk,omitzero"`
	Public   bool              `json:"public,omitempty"`
	Networks []network         `json:"networks,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Token    []byte            `json:"token,omitempty"`
	Until    time.Time         `json:"until,omitzero"`
	Extra    any               `json:"extra,omitempty"`
	Plain    string            `json:",omitempty"`
	Own      string            `json:"-"`
}

func TestSpecsAreReadStrictly(t *testing.T) {
	for name, tc := range map[string]struct{ spec, wrong string }{
		"the least":            {`{"flavor":"small"}`, ""},
		"all":                  {`{"flavor":"s","zone":"a","disk":7,"public":true,"networks":[{"id":"n"}],"labels":{"a.b":"c"},"token":"AAEC","until":"2026-01-02T03:04:05Z","extra":[1,{"x":null}],"Plain":"p"}`, ""},
		"null is missing":      {`{"flavor":"s","zone":null,"disk":null,"networks":null}`, ""},
		"a null that counts":   {`{"flavor":null}`, "flavor"},
		"an empty string":      {`{"flavor":""}`, ""},
		"missing":              {`{}`, "flavor"},
		"unknown":              {`{"flavor":"s","colour":"red","Zone":"a"}`, "Zone colour"},
		"not for others":       {`{"flavor":"s","Own":"x","placement":{}}`, "Own placement"},
		"missing in a list":    {`{"flavor":"s","networks":[{"id":"n"},{"key":"k"},null]}`, "networks[1].id"},
		"unknown in a list":    {`{"flavor":"s","networks":[{"id":"n","mtu":9}]}`, "networks[0].mtu"},
		"other types":          {`{"flavor":1,"disk":"x","public":"yes","networks":{},"labels":[],"token":[]}`, "disk flavor labels networks public token"},
		"other types within":   {`{"flavor":"s","networks":["n"],"labels":{"a.b":1,"":2}}`, `labels[""] labels["a.b"] networks[0]`},
		"a fraction of a disk": {`{"flavor":"s","disk":1.5}`, "disk"},
		"no base64":            {`{"flavor":"s","token":"!"}`, "cloudProviderSpec"},
		"no time":              {`{"flavor":"s","until":"soon"}`, "cloudProviderSpec"},
		"a list":               {`[]`, "cloudProviderSpec"},
		"null":                 {`null`, "cloudProviderSpec"},
		"no JSON":              {`{`, "cloudProviderSpec"},
	} {
		t.Run(name, func(t *testing.T) {
			err := sdk.ReadSpec([]byte(tc.spec), &sawmillSpec{})
			if got := fieldsOf(err); got != tc.wrong || (err == nil) != (tc.wrong == "") {
				t.Errorf("%v names %q, want %q", err, got, tc.wrong)
			}
			if err != nil && reasonOf(err) != "SPEC_INVALID" {
				t.Errorf("%v has the reason %s", err, reasonOf(err))
			}
		})
	}
}

// An embedded struct with a name in JSON is a field like others.
func TestANamedEmbeddedStructIsAField(t *testing.T) {
	type Place struct {
		Zone string `json:"zone"`
	}
	type spec struct {
		Place `json:"place"`
	}
	for given, wrong := range map[string]string{
		`{"place":{"zone":"a"}}`: "", `{"place":{}}`: "place.zone", `{"zone":"a"}`: "zone place", `{"place":{"zone":"a"},"zone":"a"}`: "zone",
	} {
		if err := sdk.ReadSpec([]byte(given), &spec{}); fieldsOf(err) != wrong {
			t.Errorf("%s: %v, want %q", given, err, wrong)
		}
	}
}

func TestSpecsAreReadAsByJSON(t *testing.T) {
	spec := `{"flavor":"s","zone":"a","disk":7,"public":true,"networks":[{"id":"n","key":"k"}],"labels":{"a.b":"c"},"token":"AAEC"}`
	var got, want sawmillSpec
	if err := json.Unmarshal([]byte(spec), &want); err != nil {
		t.Fatal(err)
	}
	if err := sdk.ReadSpec([]byte(spec), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sawmillSpec{})); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
}

func FuzzSpecsNeverPanic(f *testing.F) {
	f.Add([]byte(`{"flavor":"s","networks":[{"id":1}],"labels":{"":{}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var spec sawmillSpec
		if err := sdk.ReadSpec(raw, &spec); err == nil && json.Unmarshal(raw, &sawmillSpec{}) != nil {
			t.Errorf("%s was read, though it is no such spec", raw)
		}
	})
}
