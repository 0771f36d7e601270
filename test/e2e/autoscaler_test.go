package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// A deployment that an autoscaler may scale says what a machine of it would offer, as its driver
// knows it: the autoscaler needs that to scale it from zero. A user's own words stay, and nothing
// is replaced.
func TestOPS3_ScaleFromZeroNeedsNoAnnotations(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(autoscaled(deployment("zero", 0, nil), ""))
	u.awaitCapacity("zero", "2", "4Gi")
	if got := u.annotation("zero", "labels"); !strings.Contains(got, "kubernetes.io/arch=amd64") || !strings.Contains(got, "node.kubernetes.io/instance-type=small") {
		t.Errorf("its Nodes' labels are told as %q", got)
	}
	u.apply(autoscaled(deployment("zero", 0, map[string]string{"flavor": "medium"}), ""))
	u.awaitCapacity("zero", "4", "8Gi")

	own := fmt.Sprintf("%s: \"7\", %s: 3Gi, ", clusterv1alpha1.CapacityCPUAnnotation, clusterv1alpha1.CapacityMemoryAnnotation)
	u.apply(autoscaled(deployment("own", 1, nil), own))
	u.apply(autoscaled(deployment("unknown", 0, map[string]string{"flavor": "nameless"}), ""))
	u.awaitRunning(1)
	eventually(t, "an event to say that nobody knows what the flavor offers", func(context.Context) error {
		if out := u.kubectl("get", "events", "--field-selector=reason=CapacityUnknown", "-o", "yaml"); !strings.Contains(out, "nameless") {
			return fmt.Errorf("the events are %s", out)
		}
		return nil
	})
	u.awaitCapacity("own", "7", "3Gi")
	u.awaitPause("own", "")
	u.kubectl("annotate", "machinedeployment/own", clusterv1alpha1.PausedAnnotation+"=")
	u.awaitPause("own", clusterv1alpha1.PausedAnnotation)
	u.kubectl("annotate", "machinedeployment/own", clusterv1alpha1.PausedAnnotation+"-")
	u.awaitPause("own", "")
	if got := u.annotation("unknown", "cpu"); got != "" {
		t.Errorf("a flavor that nobody knows has %q CPUs", got)
	}
}

// What the real cluster-autoscaler reads of a node group, and does with it, under the rights of
// deploy/autoscaler. The rules are those of its provider clusterapi, 1.34 to 1.36.
func TestOPS3_TheAutoscalersChecklist(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.kubectl("apply", "-k", "../../deploy/autoscaler")
	u.apply(autoscaled(deployment("group", 3, nil), ""))
	u.awaitRunning(3)
	as := "--as=system:serviceaccount:kube-system:cluster-autoscaler"
	read := func(kind string) []unstructured.Unstructured {
		t.Helper()
		var list unstructured.UnstructuredList
		if err := list.UnmarshalJSON([]byte(u.kubectl("get", kind, as, "-o", "json"))); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	group := read("machinedeployments")[0]
	if replicas, found, err := unstructured.NestedInt64(group.Object, "spec", "replicas"); !found || err != nil || replicas != 3 {
		t.Errorf("spec.replicas is %d: it has to be an integer, and there", replicas)
	}
	set := read("machinesets")[0]
	if owner := metav1.GetControllerOf(&set); owner == nil || owner.Kind != "MachineDeployment" || owner.Name != "group" {
		t.Errorf("the set's owner is %+v", owner)
	}
	_, isLabelled := set.GetLabels()["cluster.x-k8s.io/deployment-name"]
	if _, err := strconv.Atoi(set.GetAnnotations()["machinedeployment.clusters.x-k8s.io/revision"]); err != nil || !isLabelled {
		t.Errorf("the set has the label: %t; its revision: %v", isLabelled, err)
	}
	var nodes corev1.NodeList
	if err := u.client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	machines := read("machines")
	for i := range machines {
		m := &machines[i]
		if owner := metav1.GetControllerOf(m); owner == nil || owner.Kind != "MachineSet" || owner.Name != set.GetName() {
			t.Errorf("%s: its owner is %+v", m.GetName(), owner)
		}
		if text, found, _ := unstructured.NestedString(m.Object, "status", "failureMessage"); found {
			t.Errorf("%s works and has the failure %q", m.GetName(), text)
		}
		provider, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
		i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == node })
		if i < 0 || provider == "" || nodes.Items[i].Spec.ProviderID != provider {
			t.Errorf("%s has the providerID %q, and its Node %q another", m.GetName(), provider, node)
			continue
		}
		notes := nodes.Items[i].Annotations
		if _, foreign := notes["cluster.k8s.io/cluster-namespace"]; foreign || notes["cluster.k8s.io/machine"] != u.namespace+"/"+m.GetName() {
			t.Errorf("the Node of %s has the annotations %v", m.GetName(), notes)
		}
	}
	// It annotates the machine that is to go, by writing all of it, and then lowers the size.
	chosen := &machines[1]
	notes := chosen.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes["cluster.k8s.io/delete-machine"] = time.Now().String()
	chosen.SetAnnotations(notes)
	raw, err := chosen.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := u.try(raw, "replace", as, "-f", "-"); err != nil {
		t.Fatalf("annotate %s: %v: %s", chosen.GetName(), err, out)
	}
	u.kubectl("scale", as, "machinedeployments/group", "--replicas=2")
	u.awaitRunning(2)
	if slices.Contains(u.names(), chosen.GetName()) {
		t.Errorf("%s was chosen to go; left are %v", chosen.GetName(), u.names())
	}
	if out, err := u.try(nil, "delete", as, "machines/"+machines[0].GetName()); err == nil {
		t.Errorf("it may delete machines: %s", out)
	}
}

// autoscaled adds sizes, and other annotations, to a manifest.
func autoscaled(manifest, others string) string {
	return strings.Replace(manifest, "\nmetadata:\n", fmt.Sprintf("\nmetadata:\n  annotations: {%s%s: \"0\", %s: \"5\"}\n",
		others, clusterv1alpha1.NodeGroupMinSizeAnnotation, clusterv1alpha1.NodeGroupMaxSizeAnnotation), 1)
}

// annotation returns what is said of the capacity of a machine.
func (u *user) annotation(name, key string) string {
	u.t.Helper()
	return u.annotations(name)["capacity.cluster-autoscaler.kubernetes.io/"+key]
}

func (u *user) annotations(deployment string) map[string]string {
	u.t.Helper()
	md := &clusterv1alpha1.MachineDeployment{}
	if err := u.client.Get(u.t.Context(), client.ObjectKey{Namespace: u.namespace, Name: deployment}, md); err != nil {
		u.t.Fatal(err)
	}
	return md.Annotations
}

// awaitPause waits for what tells the autoscaler to leave a deployment alone.
func (u *user) awaitPause(name, value string) {
	u.t.Helper()
	eventually(u.t, "the autoscaler to be told of the pause", func(context.Context) error {
		if got := u.annotations(name)[clusterv1alpha1.ClusterAPIPausedAnnotation]; got != value {
			return fmt.Errorf("it is told %q, want %q", got, value)
		}
		return nil
	})
}

func (u *user) awaitCapacity(name, cpu, memory string) {
	u.t.Helper()
	eventually(u.t, "the capacity of a machine to be told", func(context.Context) error {
		if gotCPU, gotMemory := u.annotation(name, "cpu"), u.annotation(name, "memory"); gotCPU != cpu || gotMemory != memory {
			return fmt.Errorf("%s has cpu %q and memory %q, want %s and %s", name, gotCPU, gotMemory, cpu, memory)
		}
		return nil
	})
}
