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
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	if err == nil {
		err = decoder.Decode(&tree)
	}
	if err != nil {
		return nil, fmt.Errorf("sort fields: %w", err)
	}
	return json.Marshal(tree)
}

// forVM returns the part of a spec that a VM is made from. A change of it replaces Machines. It
// shares memory with the spec.
func forVM(spec *clusterv1alpha1.MachineSpec) clusterv1alpha1.MachineSpec {
	return clusterv1alpha1.MachineSpec{ProviderSpec: spec.ProviderSpec, ClusterRef: spec.ClusterRef, Bootstrap: spec.Bootstrap, Versions: spec.Versions}
}

// inPlace returns the part of a spec that reaches Machines that exist already: all but what needs
// another VM, and what is each Machine's own. What it leaves out is zero. It shares memory with the
// spec.
func inPlace(spec *clusterv1alpha1.MachineSpec) clusterv1alpha1.MachineSpec {
	part := *spec
	part.ProviderSpec, part.ClusterRef, part.Bootstrap, part.Versions = clusterv1alpha1.ProviderSpec{}, nil, nil, clusterv1alpha1.MachineVersions{}
	part.MachineUID, part.ProviderID = nil, nil
	// The API keeps this field for old clients; nothing reads it.
	part.Metadata.CreationTimestamp = nil
	return part
}

// CopyInPlace copies the in-place part of from, and leaves the rest of to as it is. They share no
// memory afterwards.
func CopyInPlace(to, from *clusterv1alpha1.MachineSpec) {
	part := inPlace(from.DeepCopy())
	part.ProviderSpec, part.ClusterRef, part.Bootstrap, part.Versions = to.ProviderSpec, to.ClusterRef, to.Bootstrap, to.Versions
	part.MachineUID, part.ProviderID = to.MachineUID, to.ProviderID
	part.Metadata.CreationTimestamp = to.Metadata.CreationTimestamp
	*to = part
}
