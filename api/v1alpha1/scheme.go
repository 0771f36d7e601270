package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "cluster.k8s.io", Version: "v1alpha1"}

// The kinds of this package, as they stand in `kind:` and in owner references.
const (
	MachineDeploymentKind  = "MachineDeployment"
	MachineSetKind         = "MachineSet"
	MachineKind            = "Machine"
	MachineClassKind       = "MachineClass"
	ClusterKind            = "Cluster"
	MachineHealthCheckKind = "MachineHealthCheck"
)

// AddToScheme registers the kinds of this package, so that clients can encode
// and decode them. It fails only if the scheme already holds other Go types
// under the same kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&MachineDeployment{}, &MachineDeploymentList{},
		&MachineSet{}, &MachineSetList{},
		&Machine{}, &MachineList{},
		&MachineClass{}, &MachineClassList{},
		&Cluster{}, &ClusterList{},
		&MachineHealthCheck{}, &MachineHealthCheckList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
