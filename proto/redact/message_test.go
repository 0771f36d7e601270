package redact

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// nested is a message that holds debug_redact wherever it can stand: in a message, in a list and a
// map of messages, on a list, on a map and on a message.
func nested(t *testing.T) proto.Message {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal([]byte(`
		name: "nested.proto" package: "nested" syntax: "proto3"
		message_type {
			name: "Leaf"
			field { name: "secret" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL options { debug_redact: true } }
			field { name: "open" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		}
		message_type {
			name: "Tree"
			field { name: "leaf" number: 1 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_OPTIONAL }
			field { name: "leaves" number: 2 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_REPEATED }
			field { name: "by_name" number: 3 type: TYPE_MESSAGE type_name: ".nested.Tree.ByNameEntry" label: LABEL_REPEATED }
			field { name: "secrets" number: 4 type: TYPE_STRING label: LABEL_REPEATED options { debug_redact: true } }
			field { name: "secret_leaf" number: 5 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_OPTIONAL options { debug_redact: true } }
			field { name: "blob" number: 6 type: TYPE_BYTES label: LABEL_OPTIONAL }
			field { name: "secret_by_name" number: 7 type: TYPE_MESSAGE type_name: ".nested.Tree.SecretByNameEntry" label: LABEL_REPEATED options { debug_redact: true } }
			nested_type {
				name: "ByNameEntry" options { map_entry: true }
				field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
				field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_OPTIONAL }
			}
			nested_type {
				name: "SecretByNameEntry" options { map_entry: true }
				field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
				field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
			}
		}`), file); err != nil {
		t.Fatal(err)
	}
	described, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree := dynamicpb.NewMessage(described.Messages().ByName("Tree"))
	leaf := `{ secret: "canary" open: "to see" }`
	if err := prototext.Unmarshal([]byte(`leaf `+leaf+` leaves `+leaf+` by_name { key: "k" value `+leaf+` } secrets: "canary"
		secret_leaf { open: "canary" } blob: "canary" secret_by_name { key: "canary" value: "canary" }`), tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestMessageSeesEveryPlace(t *testing.T) {
	tree := nested(t)
	got := fmt.Sprint((*Secrets)(nil).Message(tree).LogValue())
	if strings.Contains(got, "canary") {
		t.Errorf("a secret is left: %s", got)
	}
	if n := strings.Count(got, "to see"); n != 3 {
		t.Errorf("%d of 3 fields that may be seen are left: %s", n, got)
	}
	if n := strings.Count(got, "[redacted]"); n != 6 {
		t.Errorf("%d of 6 fields are redacted: %s", n, got)
	}
	if !strings.Contains(got, "[6 bytes]") {
		t.Errorf("bytes are not told by their number: %s", got)
	}
}

func TestMessageOfWhatIsNone(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"nil":             {nil, "<nil>"},
		"a text":          {"canary", "string"},
		"a nil message":   {(*driverv1alpha1.MachineRef)(nil), "map[]"},
		"an unknown enum": {&driverv1alpha1.Machine{State: 99}, "map[state:99]"},
		"a known enum":    {&driverv1alpha1.Machine{State: 2}, "map[state:MACHINE_STATE_RUNNING]"},
		"a number":        {&driverv1alpha1.ListMachinesRequest{PageSize: 7}, "map[page_size:7]"},
	} {
		if got := fmt.Sprint((*Secrets)(nil).Message(tc.value).LogValue()); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestMessageHidesSecretsInItsTexts(t *testing.T) {
	request := &driverv1alpha1.CreateMachineRequest{
		Provider: &driverv1alpha1.ProviderContext{Secrets: map[string][]byte{"password": []byte("canary-7f3a")}},
		Tags:     map[string]string{"canary-7f3a": "has canary-7f3a", "zone": "a"},
	}
	machine := &driverv1alpha1.Machine{
		NodeName: "node-canary-7f3a", ProviderId: "sawmill:///canary-7f3a",
		Addresses: []*driverv1alpha1.MachineAddress{{Address: "canary-7f3a"}}, Reason: "zone:a",
	}
	for _, message := range []proto.Message{request, machine} {
		got := fmt.Sprint(Of(request).Message(message).LogValue())
		if strings.Contains(got, "canary") || !strings.Contains(got, "zone:a") {
			t.Errorf("logged as %s", got)
		}
	}
}
