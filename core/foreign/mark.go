package foreign

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// The systems that are known.
const (
	machineController = "Kubermatic's machine-controller"
	gardener          = "Gardener's machine-controller-manager"
	clusterAPI        = "Cluster API"
	openShift         = "OpenShift's machine-api-operator"
)

// finalizers are those that systems put on what they work on, by their whole name.
var finalizers = map[string]string{
	// https://github.com/kubermatic/machine-controller, pkg/controller/machine: before it makes a
	// VM, and once it has a Node.
	"machine-delete-finalizer":      machineController,
	"machine-node-delete-finalizer": machineController,
	// sigs.k8s.io/cluster-api, v1alpha1, pkg/apis/cluster/v1alpha1: it had this very group.
	"machine.cluster.k8s.io": clusterAPI,
}

// domains are those of systems whose finalizers have one: it, or a part of it.
var domains = map[string]string{
	"machine.sapcloud.io":  gardener,
	"cluster.x-k8s.io":     clusterAPI,
	"machine.openshift.io": openShift,
}

// Notes are labels and annotations with which somebody gives a Machine to one system. Their values
// are not empty.
const (
	// workerLabel names which of several machine-controllers works on a Machine.
	workerLabel = "machine.k8s.io/controller"
	// initializersAnnotation holds a machine-controller up until others have prepared the Machine.
	initializersAnnotation = "machine-controller.kubermatic.io/initializers"
)

// Mark is what shows that another system works on an object. The zero value is none.
type Mark struct {
	// System is who works on it, for people.
	System string
	// What is what shows that, for people: "finalizer x".
	What string
}

// Of returns the object's mark. What somebody wished for in a label or an annotation counts only
// until Millwright has put its own finalizer on a Machine: templates that were moved in from
// another cluster may bring such. Of several marks it is always the same one.
func Of(o metav1.Object) Mark {
	names := slices.Clone(o.GetFinalizers())
	slices.Sort(names)
	for _, name := range names {
		if system := systemOf(name); system != "" {
			return Mark{System: system, What: "finalizer " + name}
		}
	}
	if slices.Contains(names, clusterv1alpha1.MachineFinalizer) {
		return Mark{}
	}
	switch {
	case o.GetLabels()[workerLabel] != "":
		return Mark{System: machineController, What: "label " + workerLabel}
	case o.GetAnnotations()[initializersAnnotation] != "":
		return Mark{System: machineController, What: "annotation " + initializersAnnotation}
	}
	return Mark{}
}

// systemOf is whose finalizer that is; empty if it is none of a system that is known.
func systemOf(finalizer string) string {
	if system, known := finalizers[finalizer]; known {
		return system
	}
	domain, _, _ := strings.Cut(finalizer, "/")
	for known, system := range domains {
		if domain == known || strings.HasSuffix(domain, "."+known) {
			return system
		}
	}
	return ""
}

// First is the lesser of two marks. So the one of many that is shown does not depend on their
// order. The zero Mark is greater than any other.
func First(a, b Mark) Mark {
	if a == (Mark{}) || b != (Mark{}) && cmp.Or(cmp.Compare(b.System, a.System), cmp.Compare(b.What, a.What)) < 0 {
		return b
	}
	return a
}
