package machineset

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/scale"
)

// cache is a cache of one namespace that never changes.
type cache struct {
	client.Client
	objects  map[client.ObjectKey]client.Object
	sets     []runtime.Object
	machines toolscache.SharedIndexInformer
}

// informers are those of a cache; but for Machines it has none.
type informers struct {
	ctrlcache.Cache
	machines toolscache.SharedIndexInformer
}

func (i informers) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (i informers) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return i.machines, nil
}

func (c cache) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	switch found := c.objects[key].(type) {
	case *clusterv1alpha1.MachineSet:
		if set, ok := out.(*clusterv1alpha1.MachineSet); ok {
			*set = *found.DeepCopy()
			return nil
		}
	case *clusterv1alpha1.MachineDeployment:
		if md, ok := out.(*clusterv1alpha1.MachineDeployment); ok {
			*md = *found.DeepCopy()
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c cache) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if _, ok := options.FieldSelector.RequiresExactMatch(ownership.Index); !ok {
		return nil // another system's mark is nowhere
	}
	return apimeta.SetList(out, c.sets)
}

// benchmarkSet is a set of n Machines that are all Running, and belongs to a MachineDeployment.
func benchmarkSet(n int) (*clusterv1alpha1.MachineSet, cache) {
	controlledBy := func(kind, name, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{
			APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true),
		}}
	}
	labels := map[string]string{"pool": "a", "machine-template-hash": "abcdef"}
	md := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool", UID: "md"}}
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "pool-abcdef", UID: "set", Generation: 1, ResourceVersion: "5",
			OwnerReferences: controlledBy("MachineDeployment", "pool", "md"),
			Annotations:     map[string]string{clusterv1alpha1.MaxReplicasAnnotation: fmt.Sprint(n + 1)},
		},
		Spec: clusterv1alpha1.MachineSetSpec{
			Replicas: new(int32(n)), Selector: clusterv1alpha1.LabelSelector{MatchLabels: labels},
			Template: clusterv1alpha1.MachineTemplateSpec{ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: labels}},
		},
		Status: clusterv1alpha1.MachineSetStatus{NextIndex: int64(n)},
	}
	c := cache{objects: map[client.ObjectKey]client.Object{
		client.ObjectKeyFromObject(set): set, client.ObjectKeyFromObject(md): md,
	}, sets: []runtime.Object{set}, machines: toolscache.NewSharedIndexInformer(nil, &clusterv1alpha1.Machine{}, 0, toolscache.Indexers{})}
	if err := ownership.AddIndexes(context.Background(), informers{machines: c.machines}); err != nil {
		panic(err)
	}
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	for i, name := range scale.NewNames(set.Name, "set", 0).Take(n) {
		m := newMachine(set, name)
		m.UID, m.ResourceVersion, m.CreationTimestamp = types.UID(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i)), "4", long
		m.Status.Phase, m.Status.NodeRef = clusterv1alpha1.MachinePhaseRunning, &corev1.ObjectReference{Name: name}
		for _, kind := range []string{
			clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ConditionReady,
		} {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "AsItShouldBe", LastTransitionTime: long,
			})
		}
		if err := c.machines.GetIndexer().Add(m); err != nil {
			panic(err)
		}
	}
	return set, c
}

// BenchmarkReconcileOfAThousandMachines is what each event of a Machine costs its set at the least:
// nothing is to be done.
func BenchmarkReconcileOfAThousandMachines(b *testing.B) {
	set, c := benchmarkSet(1000)
	now := clock.RealClock{}
	options := Options{Clock: now}.withDefaults()
	fleet, err := newGauges(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	r := &reconciler{
		client: c, machines: ownership.NewMachines(informers{machines: c.machines}), live: c, clock: now, limits: options.limits(), accounts: options.Surge, foreigners: coexistence.NewReader(c),
		health: newHealthTracker(now, options.MaxUnhealthy, fleet), recorder: recorder{metrics: &counters{}},
	}
	ctx, key := context.Background(), client.ObjectKeyFromObject(set)
	b.ReportAllocs()
	for b.Loop() {
		r.debounce.Forget(key)
		machines, _, err := r.readMachines(ctx, set)
		if err != nil {
			b.Fatal(err)
		}
		o, err := r.observe(ctx, set, machines, "")
		if err != nil {
			b.Fatal(err)
		}
		p := newPlan(o)
		if o.refresh(); len(o.state.Machines) != 1000 || p.decision.Create > 0 || len(p.decision.Delete)+len(p.update) > 0 {
			b.Fatalf("of %d Machines, the plan is %+v", len(o.state.Machines), p)
		}
		isStatusDue(&set.Status, newStatus(o, &p, &results{}), time.Time{}, o.now)
	}
}
