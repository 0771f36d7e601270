package machinetemplate

import (
	"bytes"
	"encoding/json"
	"fmt"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Canonical returns equal bytes for templates that make the same VM. It leaves out what reaches
// Machines in place, and sorts the fields of a cloudProviderSpec.
func Canonical(t *clusterv1alpha1.MachineTemplateSpec) ([]byte, error) {
	return canonicalJSON(forVM(&t.Spec))
}

// IsSameVM says whether a Machine made from the template would get the same VM as m: their specs
// differ at most in what reaches Machines in place. It is false if one of them cannot be read.
func IsSameVM(m *clusterv1alpha1.Machine, t *clusterv1alpha1.MachineTemplateSpec) bool {
	var sides [2][]byte
	for i, template := range []*clusterv1alpha1.MachineTemplateSpec{{Spec: m.Spec}, t} {
		var err error
		if sides[i], err = Canonical(template); err != nil {
			return false
		}
	}
	return bytes.Equal(sides[0], sides[1])
}

// canonicalJSON sorts keys; numbers stay as they were written.
func canonicalJSON(v any) ([]byte, error) {
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
