package arena

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
	"github.com/millwright-dev/millwright/test/chaos/etcdlog"
	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// view is what etcd holds now, that of each cluster, and the changes that were not judged yet.
// Namespaces of the same name in both clusters are never deleted here.
type view struct {
	mu          sync.Mutex
	changes     []judge.Change
	deployments map[types.UID]*clusterv1alpha1.MachineDeployment
	sets        map[types.UID]*clusterv1alpha1.MachineSet
	machines    map[types.UID]*clusterv1alpha1.Machine
	nodes       map[string]*corev1.Node
	pods        map[types.UID]*corev1.Pod
	namespaces  map[string]*corev1.Namespace
	attachments map[string]*storagev1.VolumeAttachment
}

func newView() *view {
	return &view{
		deployments: map[types.UID]*clusterv1alpha1.MachineDeployment{}, sets: map[types.UID]*clusterv1alpha1.MachineSet{},
		machines: map[types.UID]*clusterv1alpha1.Machine{}, nodes: map[string]*corev1.Node{},
		pods: map[types.UID]*corev1.Pod{}, namespaces: map[string]*corev1.Namespace{},
		attachments: map[string]*storagev1.VolumeAttachment{},
	}
}

// see takes in a change.
func (v *view) see(c etcdlog.Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changes = append(v.changes, judge.Change(c))
	switch o := c.Object.(type) {
	case *clusterv1alpha1.MachineDeployment:
		put(v.deployments, o.UID, o, c.Gone)
	case *clusterv1alpha1.MachineSet:
		put(v.sets, o.UID, o, c.Gone)
	case *clusterv1alpha1.Machine:
		put(v.machines, o.UID, o, c.Gone)
	case *corev1.Node:
		put(v.nodes, o.Name, o, c.Gone)
	case *corev1.Pod:
		put(v.pods, o.UID, o, c.Gone)
	case *corev1.Namespace:
		put(v.namespaces, o.Name, o, c.Gone)
	case *storagev1.VolumeAttachment:
		put(v.attachments, o.Name, o, c.Gone)
	}
}

func put[K comparable, O any](objects map[K]O, key K, o O, gone bool) {
	if gone {
		delete(objects, key)
		return
	}
	objects[key] = o
}

// take returns the changes since the last call.
func (v *view) take() []judge.Change {
	v.mu.Lock()
	defer v.mu.Unlock()
	changes := v.changes
	v.changes = nil
	return changes
}

// machinesOf returns the Machines of the deployment with a name, those on their way out included.
func (v *view) machinesOf(name string) []*clusterv1alpha1.Machine {
	v.mu.Lock()
	defer v.mu.Unlock()
	var found []*clusterv1alpha1.Machine
	for _, m := range v.machines {
		if d := v.deploymentOf(m); d != nil && d.Name == name {
			found = append(found, m)
		}
	}
	return found
}

// withNodes are the Machines of deployments that have a Node and are to stay, by name.
func (v *view) withNodes(deployments ...string) []*clusterv1alpha1.Machine {
	var machines []*clusterv1alpha1.Machine
	for _, name := range deployments {
		machines = append(machines, v.machinesOf(name)...)
	}
	machines = slices.DeleteFunc(machines, func(m *clusterv1alpha1.Machine) bool {
		return m.Status.NodeRef == nil || !m.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(machines, byName)
	return machines
}

// providerIDs are those of Machines that a set made, in the order of the Machines' names.
func (v *view) providerIDs() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var machines []*clusterv1alpha1.Machine
	for _, m := range v.machines {
		if m.Spec.ProviderID != nil && metav1.GetControllerOf(m) != nil {
			machines = append(machines, m)
		}
	}
	slices.SortFunc(machines, byName)
	var ids []string
	for _, m := range machines {
		ids = append(ids, *m.Spec.ProviderID)
	}
	return ids
}

// needs counts what the Machines need of a cloud, by kind.
func (v *view) needs(of clouds.Cloud) map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	want := map[string]int{}
	for _, m := range v.machines {
		for kind, n := range of.Resources(m) {
			want[kind] += n
		}
	}
	return want
}

// countPods counts the pods of an application of which something is so.
func (v *view) countPods(application string, so func(*corev1.Pod) bool) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, p := range v.pods {
		if p.Namespace == applications && p.Labels["app"] == application && so(p) {
			n++
		}
	}
	return n
}

// countAttachments counts the volumes that are attached to a Node.
func (v *view) countAttachments(node string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, a := range v.attachments {
		if a.Spec.NodeName == node {
			n++
		}
	}
	return n
}

// deploymentOf returns the deployment whose Machine this is; nil when there is none any more.
func (v *view) deploymentOf(m client.Object) *clusterv1alpha1.MachineDeployment {
	owner := metav1.GetControllerOf(m)
	if owner == nil {
		return nil
	}
	set := v.sets[owner.UID]
	if set == nil {
		return nil
	}
	if owner = metav1.GetControllerOf(set); owner == nil {
		return nil
	}
	return v.deployments[owner.UID]
}
