package spec

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node is what the tests look at of a JSON Schema.
type node struct {
	Ref                  string          `json:"$ref"`
	Type                 any             `json:"type"`
	Description          string          `json:"description"`
	WriteOnly            bool            `json:"writeOnly"`
	Format               string          `json:"format"`
	AnyOf                []node          `json:"anyOf"`
	Enum                 []any           `json:"enum"`
	Required             []string        `json:"required"`
	AdditionalProperties any             `json:"additionalProperties"`
	Properties           map[string]node `json:"properties"`
	Items                *node           `json:"items"`
}

func readSchema(t *testing.T) node {
	t.Helper()
	var root node
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestSchemaIsWhatIsRead holds the schema and the structs together, in both directions.
func TestSchemaIsWhatIsRead(t *testing.T) {
	compare(t, "cloudProviderSpec", readSchema(t), reflect.TypeFor[fields]())
}

func compare(t *testing.T, path string, n node, of reflect.Type) {
	t.Helper()
	if n.Description == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s: has no description", path)
	}
	if (n.Ref == "#/$defs/reference") != (of == reflect.TypeFor[Reference]()) {
		t.Errorf("%s: the schema says %q, the struct %v", path, n.Ref, of)
	}
	if n.Ref != "" {
		return
	}
	// All is optional, but for the whole, and for what is said where something required is missing.
	if types, _ := n.Type.([]any); path != "cloudProviderSpec" && !slices.Contains(types, any("null")) {
		t.Errorf("%s: null, which means not given, is no %v", path, n.Type)
	}
	want, loose := map[reflect.Type]string{reflect.TypeFor[truth](): "boolean", reflect.TypeFor[integer](): "integer", reflect.TypeFor[tags](): "object"}[of]
	if !loose {
		want = map[reflect.Kind]string{reflect.String: "string", reflect.Slice: "array", reflect.Struct: "object", reflect.Map: "object"}[of.Kind()]
	}
	if types, is := n.Type.([]any); want == "" || is && types[0] != want || !is && n.Type != want {
		t.Errorf("%s: the schema says %v, the struct %v", path, n.Type, of)
	}
	if loose {
		return
	}
	switch of.Kind() {
	case reflect.Slice:
		if n.Items == nil {
			t.Fatalf("%s: the schema says nothing of its elements", path)
		}
		compare(t, path+"[]", *n.Items, of.Elem())
	case reflect.Struct:
		if n.AdditionalProperties != false {
			t.Errorf("%s: other fields are not refused", path)
		}
		inStruct := map[string]reflect.Type{}
		for _, field := range reflect.VisibleFields(of) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				inStruct[name] = field.Type
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(inStruct)), slices.Sorted(maps.Keys(n.Properties))); diff != "" {
			t.Fatalf("%s: -struct +schema:\n%s", path, diff)
		}
		for name, property := range n.Properties {
			compare(t, path+"."+name, property, inStruct[name])
		}
	}
}

func TestSecretFieldsAreWriteOnly(t *testing.T) {
	root := readSchema(t)
	var marked []string
	for name, property := range root.Properties {
		if property.WriteOnly {
			marked = append(marked, name)
		}
	}
	slices.Sort(marked)
	read := &fields{}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(read.secret())), marked); diff != "" {
		t.Errorf("-taken from secrets +writeOnly:\n%s", diff)
	}
	// Each name leads to the field of that name.
	for name, field := range read.secret() {
		*field = name
	}
	told, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(told, &back); err != nil {
		t.Fatal(err)
	}
	for _, name := range marked {
		if back[name] != name {
			t.Errorf("%s is filled into another field: %v", name, back[name])
		}
	}
	for _, name := range []string{"password", "tokenId", "applicationCredentialSecret"} {
		if !slices.Contains(marked, name) {
			t.Errorf("%s is shown", name)
		}
	}
}

func TestOnlyTheEndpointIsAnAddress(t *testing.T) {
	for name, property := range readSchema(t).Properties {
		is := property.Format == "uri" || slices.ContainsFunc(property.AnyOf, func(n node) bool { return n.Format == "uri" })
		if is != (name == "identityEndpoint") {
			t.Errorf("%s: is an address: %t", name, is)
		}
	}
}

func TestSchemaIsTheCallersOwn(t *testing.T) {
	clear(Schema())
	if !json.Valid(Schema()) {
		t.Error("a caller changed it for others")
	}
}

func TestVNICTypesOfTheSchema(t *testing.T) {
	var told []string
	for _, value := range readSchema(t).Properties["ports"].Items.Properties["vnicType"].Enum {
		if text, is := value.(string); is {
			told = append(told, text)
		}
	}
	if diff := cmp.Diff(vnicTypes(), told); diff != "" {
		t.Errorf("-read +schema:\n%s", diff)
	}
}
