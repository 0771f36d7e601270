package orphangc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// bench is a namespace whose deployment, of no machines, names the cloud's account. All tests have
// one API server: the uids of Machines that they make must differ.
type bench struct {
	*testing.T
	*controllertest.Cluster
	cloud *cloud
}

func newBench(t *testing.T, vms ...*driverv1alpha1.Machine) *bench {
	t.Helper()
	b := &bench{T: t, Cluster: controllertest.New(t), cloud: newCloud(vms...)}
	labels := map[string]string{"pool": "nodes"}
	b.create(&clusterv1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "nodes"},
		Spec: clusterv1alpha1.MachineDeploymentSpec{
			Replicas: new(int32(0)), Selector: clusterv1alpha1.LabelSelector{MatchLabels: labels},
			Template: clusterv1alpha1.MachineTemplateSpec{ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: labels}, Spec: machineSpec()},
		},
	})
	return b
}

func machineSpec() clusterv1alpha1.MachineSpec {
	return clusterv1alpha1.MachineSpec{
		Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
		ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
			CloudProvider: provider, OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
			CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"small"}`)},
		}},
	}
}

func (b *bench) create(o client.Object) {
	b.Helper()
	if err := b.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// restore makes the Machine whose VM has that uid.
func (b *bench) restore(uid string) {
	b.Helper()
	b.restoreWith(uid, machineSpec())
}

func (b *bench) restoreWith(uid string, spec clusterv1alpha1.MachineSpec) {
	b.Helper()
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "m-" + uid}, Spec: spec}
	m.Spec.MachineUID = &uid
	b.create(m)
	b.Cleanup(func() { _ = b.Delete(context.WithoutCancel(b.Context()), m) })
}

// collect runs the collector, as changed, until the test ends.
func (b *bench) collect(change func(*collector)) {
	b.Helper()
	socket := b.cloud.serve(b.T)
	b.Manage(b.T, interceptor.Funcs{}, func(mgr ctrl.Manager) error {
		drivers, err := driver.New(driver.Config{ClusterUID: clusterUID, Log: logr.Discard(), ReconnectDelay: time.Millisecond},
			[]driver.Target{{Name: provider, Address: "unix://" + socket}})
		if err != nil {
			return err
		}
		c, err := newCollector(mgr, Options{
			Drivers: drivers, ClusterUID: clusterUID, Delete: true, Interval: 10 * time.Millisecond,
			Regarding: &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: b.Namespace, Name: "leader"},
		})
		if err != nil {
			return err
		}
		if change != nil {
			change(c)
		}
		return errors.Join(mgr.Add(drivers), mgr.Add(c))
	})
}

// awaitLeft waits until these uids are left and no other.
func (b *bench) awaitLeft(want ...string) {
	b.Helper()
	b.Eventually(b.T, func() string {
		if left, _, _ := b.cloud.left(); !slices.Equal(left, want) {
			return fmt.Sprintf("the cloud holds %v, want %v", left, want)
		}
		return ""
	})
}

// awaitScans waits until so many more scans have been decided on.
func (b *bench) awaitScans(n int) {
	b.Helper()
	_, before, _ := b.cloud.left()
	b.Eventually(b.T, func() string {
		// When another list has begun, what the one before showed has been acted upon.
		if _, now, _ := b.cloud.left(); now < before+n+1 {
			return fmt.Sprintf("%d lists", now-before)
		}
		return ""
	})
}

// untouched fails the test if anything was deleted.
func (b *bench) untouched() {
	b.Helper()
	if _, _, deletes := b.cloud.left(); len(deletes) > 0 {
		b.Errorf("deleted were %v", deletes)
	}
}

// awaitEvent waits for an event of that reason that says the text.
func (b *bench) awaitEvent(reason, text string) {
	b.Helper()
	b.Eventually(b.T, func() string {
		var events corev1.EventList
		if err := b.List(b.Context(), &events, client.InNamespace(b.Namespace)); err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return ""
			}
		}
		return fmt.Sprintf("there is no event %s that says %q among %d", reason, text, len(events.Items))
	})
}

func TestSAFE1_AnOrphanGoesAfterItsAge(t *testing.T) {
	b := newBench(t, aged("old", time.Hour), aged("young", time.Minute))
	before := testutil.ToFloat64(mustMetrics(t).deleted.WithLabelValues(provider))
	b.collect(nil)
	b.awaitLeft("young")
	b.awaitScans(2)
	b.awaitLeft("young")
	b.awaitEvent("OrphanDeleted", "VM sawmill:///old was made for Machine ns/m-old")
	if n := testutil.ToFloat64(mustMetrics(t).deleted.WithLabelValues(provider)) - before; n != 1 {
		t.Errorf("%v were counted as deleted, want 1", n)
	}
}

// What a delete leaves behind is removed after another scan, and counted once.
func TestSAFE1_LeftoversGoToo(t *testing.T) {
	b := newBench(t, aged("old", time.Hour))
	b.cloud.slow = true
	before := testutil.ToFloat64(mustMetrics(t).deleted.WithLabelValues(provider))
	b.collect(nil)
	b.awaitLeft()
	b.awaitScans(1)
	if n := testutil.ToFloat64(mustMetrics(t).deleted.WithLabelValues(provider)) - before; n != 1 {
		t.Errorf("%v were counted as deleted, want 1", n)
	}
}

// A driver that lists another cluster's VM filters badly. None of its list is believed.
func TestSAFE1_AForeignVMStays(t *testing.T) {
	foreign := aged("foreign", time.Hour)
	foreign.ClusterUid = "other"
	b := newBench(t, foreign, aged("ours", time.Hour))
	b.collect(nil)
	b.awaitScans(4)
	b.untouched()
}

// Younger than a create may take is too young, whatever the operator says.
func TestSAFE1_AYoungVMStays(t *testing.T) {
	b := newBench(t, aged("young", 5*time.Second))
	b.collect(func(c *collector) { c.Age = time.Nanosecond })
	b.awaitScans(4)
	b.untouched()
}

func TestSAFE1_NothingGoesWhileTheCacheIsCold(t *testing.T) {
	b := newBench(t, aged("cold", time.Hour))
	cold := make(chan *waiting, 1)
	b.collect(func(c *collector) {
		w := &waiting{Reader: c.cache, asked: make(chan struct{}), warm: make(chan struct{})}
		c.cache = w
		cold <- w
	})
	w := <-cold
	<-w.asked
	if _, lists, _ := b.cloud.left(); lists > 0 {
		t.Errorf("the cloud was asked %d times while the cache was cold", lists)
	}
	b.untouched()
	b.restore("cold") // the cache shows it once it is warm
	close(w.warm)
	b.awaitScans(4)
	b.untouched()
}

// waiting is a cache that answers nothing about Machines before warm is closed.
type waiting struct {
	client.Reader
	once        sync.Once
	asked, warm chan struct{}
}

func (w *waiting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*clusterv1alpha1.MachineList); is {
		w.once.Do(func() { close(w.asked) })
		<-w.warm
	}
	return w.Reader.List(ctx, list, options...)
}

// A Machine that only the API server knows of, not the cache, keeps its VM: this manager's cache
// has one namespace only.
func TestSAFE1_TheAPIServerItselfIsAsked(t *testing.T) {
	elsewhere := controllertest.New(t)
	b := newBench(t, aged("known-"+elsewhere.Namespace, time.Hour), aged("old", time.Hour))
	b.collect(nil)
	(&bench{T: t, Cluster: elsewhere}).restore("known-" + elsewhere.Namespace)
	b.awaitLeft("known-" + elsewhere.Namespace)
}

func TestSAFE1_NothingGoesWhileTheAPIServerIsAway(t *testing.T) {
	b := newBench(t, aged("old", time.Hour))
	b.collect(func(c *collector) { c.live = away{} })
	b.awaitScans(4)
	b.untouched()
}

type away struct{ client.Reader }

func (away) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("connection refused")
}

// A Machine was lost without its finalizer having run, was an orphan in a scan, and comes back from
// a backup with its machineUID: its VM stays.
func TestSAFE1_TheVMOfARestoredMachineStays(t *testing.T) {
	b := newBench(t, aged("lost", time.Hour))
	b.collect(func(c *collector) { c.Delete = false })
	b.awaitScans(3)
	b.awaitEvent("OrphanFound", "sawmill:///lost")
	b.restore("lost")
	b.awaitScans(3)
	b.untouched()

	restored := newBench(t, aged("back", time.Hour))
	restored.restore("back")
	restored.collect(nil)
	restored.awaitScans(4)
	restored.untouched()
}

// A VM whose Machine is known by its providerID only is no orphan.
func TestSAFE1_AProviderIDNamesAVM(t *testing.T) {
	b := newBench(t, aged("by-id", time.Hour))
	b.restore("another-uid")
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "m-another-uid"}}
	controllertest.Patch(t, b.Cluster, m, func(m *clusterv1alpha1.Machine) { m.Spec.ProviderID = new(idPrefix + "by-id") })
	b.collect(nil)
	b.awaitScans(4)
	b.untouched()
}

// A list whose second page fails is no list.
func TestSAFE1_APartialListIsNone(t *testing.T) {
	b := newBench(t, aged("a", time.Hour), aged("b", time.Hour))
	b.cloud.fail = refusal(codes.Internal, "PROVIDER_INTERNAL", "out of order")
	b.collect(nil)
	b.awaitScans(4)
	b.untouched()
	b.cloud.change(func() { b.cloud.fail = nil })
	b.awaitLeft()
}

// An account that is not found, for want of a Secret, say, keeps no other from being searched;
// secrets go along.
func TestSAFE1_AnAccountThatIsNotFoundHoldsUpNoOther(t *testing.T) {
	b := newBench(t, aged("old", time.Hour))
	spec := machineSpec()
	spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"flavor":"large"}`)
	b.restoreWith("locked", spec)
	b.collect(func(c *collector) {
		c.account = func(
			_ context.Context, _ *driver.Driver, namespace string, spec *clusterv1alpha1.MachineSpec,
		) (wire.Machine, bool, error) {
			raw := spec.ProviderSpec.Value.CloudProviderSpec.Raw
			if namespace != b.Namespace || strings.Contains(string(raw), "large") {
				return wire.Machine{}, false, errors.New("the Secret is not there")
			}
			return wire.Machine{Spec: raw, Secrets: map[string][]byte{"key": []byte("value")}}, true, nil
		}
	})
	b.awaitLeft()
	b.cloud.change(func() {
		if b.cloud.key != "value" {
			t.Errorf("the delete came with the key %q", b.cloud.key)
		}
	})
}

// theirs is a finalizer of machine-controller.
const theirs = "machine-delete-finalizer"

// What another system works on leads to no account: neither its Secrets nor its cloud are
// Millwright's business. It is searched again once the other system has let go.
func TestSAFE8_AnotherSystemsSpecsLeadToNoAccount(t *testing.T) {
	b := newBench(t, aged("old", time.Hour))
	deployment := b.createDeployment("shared")
	set := b.createSet("of-deployment", deployment)
	b.createSet("sibling", deployment)
	marked := b.createMachine("marked", set, theirs)
	b.createMachine("unmarked-beside-it", set)
	b.createMachine("alone", nil, theirs)
	b.createMachine("begun-by-millwright", nil, clusterv1alpha1.MachineFinalizer, theirs)
	b.createMachine("ours", nil, clusterv1alpha1.MachineFinalizer)
	asked := &flavors{}
	b.collect(func(c *collector) { asked.accountOf, c.account = c.accountOf, asked.naming })
	b.awaitLeft()
	b.awaitScans(2)
	if got, want := asked.all(), []string{"ours", "small"}; !slices.Equal(got, want) {
		t.Errorf("asked for the accounts of %v, want %v", got, want)
	}
	controllertest.Patch(t, b.Cluster, marked, func(m *clusterv1alpha1.Machine) { m.Finalizers = nil })
	want := []string{"marked", "of-deployment", "ours", "shared", "sibling", "small", "unmarked-beside-it"}
	b.Eventually(t, func() string {
		if got := asked.all(); !slices.Equal(got, want) {
			return fmt.Sprintf("asked for the accounts of %v, want %v", got, want)
		}
		return ""
	})
}

// flavors are those of all specs whose accounts were asked for.
type flavors struct {
	accountOf accountFinder

	mu   sync.Mutex
	seen map[string]bool
}

func (f *flavors) naming(
	ctx context.Context, d *driver.Driver, namespace string, spec *clusterv1alpha1.MachineSpec,
) (m wire.Machine, mine bool, err error) {
	var of struct{ Flavor string }
	if err := json.Unmarshal(spec.ProviderSpec.Value.CloudProviderSpec.Raw, &of); err != nil {
		return wire.Machine{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[of.Flavor] = true
	return f.accountOf(ctx, d, namespace, spec)
}

func (f *flavors) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.seen))
}

// specOf is a spec with that flavor.
func specOf(flavor string) clusterv1alpha1.MachineSpec {
	spec := machineSpec()
	spec.ProviderSpec.Value.CloudProviderSpec.Raw = fmt.Appendf(nil, `{"flavor":%q}`, flavor)
	return spec
}

// createDeployment makes one without replicas. Its spec has its name as the flavor, as those of the
// next two have.
func (b *bench) createDeployment(name string) *clusterv1alpha1.MachineDeployment {
	b.Helper()
	labels := map[string]string{"pool": name}
	d := &clusterv1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name},
		Spec: clusterv1alpha1.MachineDeploymentSpec{
			Replicas: new(int32(0)), Selector: clusterv1alpha1.LabelSelector{MatchLabels: labels},
			Template: clusterv1alpha1.MachineTemplateSpec{ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: labels}, Spec: specOf(name)},
		},
	}
	b.create(d)
	return d
}

func (b *bench) createSet(name string, of *clusterv1alpha1.MachineDeployment) *clusterv1alpha1.MachineSet {
	b.Helper()
	s := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind))},
		},
		Spec: clusterv1alpha1.MachineSetSpec{
			Replicas: new(int32(0)), Selector: of.Spec.Selector,
			Template: clusterv1alpha1.MachineTemplateSpec{ObjectMeta: of.Spec.Template.ObjectMeta, Spec: specOf(name)},
		},
	}
	b.create(s)
	return s
}

// createMachine makes a Machine of a set, or with nil of none.
func (b *bench) createMachine(name string, of *clusterv1alpha1.MachineSet, finalizers ...string) *clusterv1alpha1.Machine {
	b.Helper()
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Finalizers: finalizers}, Spec: specOf(name),
	}
	if of != nil {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind))}
	}
	b.create(m)
	return m
}

func TestSAFE1_FewGoAtATime(t *testing.T) {
	var vms []*driverv1alpha1.Machine
	for i := range 7 {
		vms = append(vms, aged(fmt.Sprint(i), time.Hour))
	}
	b := newBench(t, vms...)
	b.cloud.refuse = refusal(codes.FailedPrecondition, "DELETION_PROTECTED", "vm is locked")
	b.collect(func(c *collector) { c.most = 2 })
	b.awaitEvent("OrphanNotDeleted", "vm is locked")
	b.Eventually(t, func() string {
		_, lists, deletes := b.cloud.left()
		if len(deletes) > 2*lists {
			t.Fatalf("%d deletes in %d scans", len(deletes), lists)
		}
		for i := range 7 {
			if !slices.Contains(deletes, fmt.Sprint(i)) {
				return fmt.Sprintf("%d was never tried", i)
			}
		}
		return ""
	})
	b.cloud.change(func() { b.cloud.refuse = nil })
	b.awaitLeft()
}

func mustMetrics(t *testing.T) *vectors {
	t.Helper()
	m, err := newMetrics(metrics.Registry)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
