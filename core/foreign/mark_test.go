package foreign

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestSAFE8_WhichMarksAreAnotherSystems(t *testing.T) {
	const worker, initializers = "machine.k8s.io/controller", "machine-controller.kubermatic.io/initializers"
	ours := clusterv1alpha1.MachineFinalizer
	for name, tc := range map[string]struct {
		finalizers          []string
		labels, annotations map[string]string
		system, what        string
	}{
		"nothing":                               {},
		"ours":                                  {finalizers: []string{ours, clusterv1alpha1.InUseFinalizer}},
		"Kubernetes'":                           {finalizers: []string{"foregroundDeletion", "orphan"}},
		"a backup's":                            {finalizers: []string{"backup.example.com/keep"}},
		"a name that only looks like it":        {finalizers: []string{"my-machine-delete-finalizer", "xcluster.x-k8s.io", "cluster.x-k8s.io.example.com/x"}},
		"machine-controller's":                  {finalizers: []string{"machine-delete-finalizer"}, system: "Kubermatic", what: "finalizer machine-delete-finalizer"},
		"its second":                            {finalizers: []string{"machine-node-delete-finalizer"}, system: "Kubermatic", what: "finalizer machine-node-delete-finalizer"},
		"beside ours":                           {finalizers: []string{ours, "machine-delete-finalizer"}, system: "Kubermatic", what: "finalizer machine-delete-finalizer"},
		"Gardener's":                            {finalizers: []string{"machine.sapcloud.io/machine-controller-manager"}, system: "Gardener", what: "finalizer machine.sapcloud.io/machine-controller-manager"},
		"Cluster API's first":                   {finalizers: []string{"machine.cluster.k8s.io"}, system: "Cluster API", what: "finalizer machine.cluster.k8s.io"},
		"Cluster API's":                         {finalizers: []string{"machine.cluster.x-k8s.io"}, system: "Cluster API", what: "finalizer machine.cluster.x-k8s.io"},
		"Cluster API's on a set":                {finalizers: []string{"cluster.x-k8s.io/machineset"}, system: "Cluster API", what: "finalizer cluster.x-k8s.io/machineset"},
		"OpenShift's":                           {finalizers: []string{"machine.machine.openshift.io"}, system: "OpenShift", what: "finalizer machine.machine.openshift.io"},
		"a worker's label":                      {labels: map[string]string{worker: "worker"}, system: "Kubermatic", what: "label " + worker},
		"the label of the worker with no name":  {labels: map[string]string{worker: ""}},
		"an initializer":                        {annotations: map[string]string{initializers: "ipam"}, system: "Kubermatic", what: "annotation " + initializers},
		"an initializer that is done":           {annotations: map[string]string{initializers: ""}},
		"notes of a template on one of ours":    {finalizers: []string{ours}, labels: map[string]string{worker: "w"}, annotations: map[string]string{initializers: "ipam"}},
		"a finalizer is told before a label is": {finalizers: []string{"machine-delete-finalizer"}, labels: map[string]string{worker: "w"}, system: "Kubermatic", what: "finalizer machine-delete-finalizer"},
	} {
		got := Of(&metav1.ObjectMeta{Finalizers: tc.finalizers, Labels: tc.labels, Annotations: tc.annotations})
		if got.What != tc.what || !strings.HasPrefix(got.System, tc.system) || (got.System == "") != (tc.system == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The mark of an object, and the one of many objects, do not depend on an order: a message would
// change with it.
func TestFirstIsTheLesserOfTwoMarks(t *testing.T) {
	a, b, c := Mark{"one", "x"}, Mark{"one", "y"}, Mark{"two", "a"}
	for _, tc := range []struct{ left, right, want Mark }{
		{a, b, a}, {b, a, a}, {b, c, b}, {c, b, b}, {a, a, a}, {a, Mark{}, a}, {Mark{}, a, a}, {Mark{}, Mark{}, Mark{}},
	} {
		if got := First(tc.left, tc.right); got != tc.want {
			t.Errorf("of %+v and %+v the first is %+v, want %+v", tc.left, tc.right, got, tc.want)
		}
	}
}

func TestSAFE8_TheMarkThatIsShownIsAlwaysTheSame(t *testing.T) {
	all := []string{
		"machine-delete-finalizer", "machine-node-delete-finalizer", "machine.cluster.k8s.io", "machine.cluster.x-k8s.io",
		"machine.sapcloud.io/machine-controller-manager", clusterv1alpha1.MachineFinalizer, "example.com/x",
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID[string]).Draw(t, "finalizers")
		shuffled := rapid.Permutation(names).Draw(t, "shuffled")
		one, other := Of(&metav1.ObjectMeta{Finalizers: names}), Of(&metav1.ObjectMeta{Finalizers: shuffled})
		if one != other {
			t.Fatalf("%+v of %v, %+v of %v", one, names, other, shuffled)
		}
		first, second := Mark{}, Mark{}
		for i := range names {
			first = First(first, Of(&metav1.ObjectMeta{Finalizers: names[i : i+1]}))
			second = First(second, Of(&metav1.ObjectMeta{Finalizers: shuffled[i : i+1]}))
		}
		known := slices.ContainsFunc(names, func(n string) bool { return systemOf(n) != "" })
		if first != second || (first == Mark{}) == known {
			t.Fatalf("%+v or %+v of %v", first, second, names)
		}
	})
}
