package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// CanonicalTemplate returns bytes that are the same for templates that mean the same VM: of what reaches Machines in place
// there is nothing in them, and the fields of a cloudProviderSpec stand in one order.
func CanonicalTemplate(t *clusterv1alpha1.MachineTemplateSpec) ([]byte, error) {
	return canonical(forVM(&t.Spec))
}

// SameSpec says whether a Machine made from the template would get the same VM as m: whether their specs are the same but
// for what reaches Machines in place.
func SameSpec(m *clusterv1alpha1.Machine, t *clusterv1alpha1.MachineTemplateSpec) bool {
	var sides [2][]byte
	for i, template := range []*clusterv1alpha1.MachineTemplateSpec{{Spec: m.Spec}, t} {
		var err error
		if sides[i], err = CanonicalTemplate(template); err != nil {
			return false
		}
	}
	return bytes.Equal(sides[0], sides[1])
}

// canonical is JSON with sorted keys; numbers stay as they were written.
func canonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	return json.Marshal(tree)
}
