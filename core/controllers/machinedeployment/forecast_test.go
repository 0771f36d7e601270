package machinedeployment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/machinedeployment"
	"github.com/millwright-dev/millwright/core/controllers/machineset"
	"github.com/millwright-dev/millwright/core/forecast"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/surge"
)

// What a forecast says is what the controllers then do, wave by wave. Here machines come up and go
// as a forecast assumes: all at once, while the controllers rest. 200 changes are tried, 60 with
// -short.
func TestForecastsComeTrue(t *testing.T) {
	t.Parallel()
	const atOnce, changes = 6, 10
	deployments := uint64(20)
	if testing.Short() {
		deployments = 6
	}
	var running sync.WaitGroup
	next := make(chan uint64, deployments)
	for seed := range deployments {
		next <- seed
	}
	close(next)
	for range atOnce { // they mostly wait
		running.Go(func() {
			for seed := range next {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { followChanges(t, rand.New(rand.NewPCG(seed, 0)), changes) })
			}
		})
	}
	running.Wait()
}

// followChanges changes a deployment so many times, some of them in the middle of a rollout.
func followChanges(t *testing.T, random *rand.Rand, changes int) {
	t.Helper()
	l := newLockstep(t)
	md, isComplete := newDeployment(t, l.Cluster, random.Int32N(6)), false
	for i := range changes {
		c := l.change(t, random, md, isComplete)
		waves := len(c.forecast.Waves)
		if i < changes-1 && !c.deletes && random.IntN(3) == 0 {
			waves = random.IntN(3)
		}
		l.follow(t, c, fmt.Sprintf("change %d: %s", i, c.what), waves)
		isComplete = waves == len(c.forecast.Waves) && c.forecast.Wait.For == rollout.Nothing
	}
}

// lockstep is a cluster in which nothing happens by itself.
type lockstep struct {
	*controllertest.Cluster
	// gate is held by those who change something while no controller looks.
	gate  sync.RWMutex
	cache client.Client
}

func newLockstep(t *testing.T) *lockstep {
	t.Helper()
	l := &lockstep{Cluster: controllertest.New(t)}
	accounts := surge.NewAccounts(clock.RealClock{})
	l.Manage(t, interceptor.Funcs{
		// Each reconciliation begins with a look at its object.
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			l.gate.RLock()
			defer l.gate.RUnlock()
			return c.Get(ctx, key, o, options...)
		},
	}, func(mgr ctrl.Manager) error {
		l.cache = mgr.GetClient()
		return machinedeployment.Add(mgr, machinedeployment.Options{Surge: accounts})
	}, func(mgr ctrl.Manager) error { return machineset.Add(mgr, machineset.Options{Surge: accounts}) })
	return l
}

// alone does something while the controllers rest, and has them go on when they can see it.
func (l *lockstep) alone(t *testing.T, do func()) {
	t.Helper()
	l.gate.Lock()
	defer l.gate.Unlock()
	// A reconciliation may have begun: nothing has to have changed for a while.
	before := map[string]string{}
	err := wait.PollUntilContextTimeout(t.Context(), rest, time.Minute, true, func(context.Context) (bool, error) {
		last := before
		before = l.versions(t, l.Cluster)
		return cmp.Equal(last, before), nil
	})
	if err != nil {
		t.Fatal("the controllers do not rest")
	}
	do()
	l.Eventually(t, func() string { return cmp.Diff(l.versions(t, l.Cluster), l.versions(t, l.cache)) })
}

// versions are those of all objects as a client shows them.
func (l *lockstep) versions(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	deployments, machineSets, machines := l.read(t, c)
	versions := map[string]string{}
	for i := range deployments {
		versions["deployment "+deployments[i].Name] = deployments[i].ResourceVersion
	}
	for i := range machineSets {
		versions["set "+machineSets[i].Name] = machineSets[i].ResourceVersion
	}
	for i := range machines {
		versions["machine "+machines[i].Name] = machines[i].ResourceVersion
	}
	return versions
}

func (l *lockstep) read(t *testing.T, c client.Client) (
	deployments []clusterv1alpha1.MachineDeployment, machineSets []clusterv1alpha1.MachineSet, machines []clusterv1alpha1.Machine,
) {
	t.Helper()
	var d clusterv1alpha1.MachineDeploymentList
	var s clusterv1alpha1.MachineSetList
	var m clusterv1alpha1.MachineList
	for _, list := range []client.ObjectList{&d, &s, &m} {
		if err := c.List(t.Context(), list, client.InNamespace(l.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	return d.Items, s.Items, m.Items
}

// snapshot is what a set has.
type snapshot struct {
	size           int32
	live, deleting []string
}

// look returns what each set has, by its name.
func (l *lockstep) look(t *testing.T) map[string]snapshot {
	t.Helper()
	_, machineSets, machines := l.read(t, l.Cluster)
	sets := map[string]snapshot{}
	for i := range machineSets {
		s := snapshot{size: ptr.Deref(machineSets[i].Spec.Replicas, -1)}
		for j := range machines {
			switch {
			case !metav1.IsControlledBy(&machines[j], &machineSets[i]):
			case machines[j].DeletionTimestamp.IsZero():
				s.live = append(s.live, machines[j].Name)
			default:
				s.deleting = append(s.deleting, machines[j].Name)
			}
		}
		sets[machineSets[i].Name] = s
	}
	return sets
}

// forecast is made from what the API server has.
func (l *lockstep) forecast(t *testing.T) forecast.Forecast {
	t.Helper()
	deployments, machineSets, machines := l.read(t, l.Cluster)
	bySet := map[types.UID][]clusterv1alpha1.Machine{}
	for i := range machines {
		owner := metav1.GetControllerOf(&machines[i])
		bySet[owner.UID] = append(bySet[owner.UID], machines[i])
	}
	f, err := forecast.Of(&deployments[0], machineSets, bySet, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// follow compares what happens after a change with the forecast, for so many waves at most.
func (l *lockstep) follow(t *testing.T, c changed, what string, waves int) {
	t.Helper()
	f, known := c.forecast, c.before
	before := known
	for i, wave := range append(f.Waves, forecast.Wave{}) {
		want := told(wave, known)
		problem := func() string {
			if diff := cmp.Diff(want, difference(before, l.look(t), known)); diff != "" {
				return fmt.Sprintf("%s\nwave %d of %+v\n-forecast +happened: %s", what, i, f, diff)
			}
			return l.unsettled(t)
		}
		l.Eventually(t, problem)
		l.Stays(t, rest, problem)
		if i == len(f.Waves) || i == waves {
			return
		}
		l.alone(t, func() { l.pass(t); before = l.look(t) })
	}
}

// rest is for how long nothing happens when controllers have nothing to do.
const rest = 100 * time.Millisecond

// unsettled says what the controllers have yet to write.
func (l *lockstep) unsettled(t *testing.T) string {
	t.Helper()
	deployments, machineSets, machines := l.read(t, l.Cluster)
	if d := deployments[0]; d.Status.ObservedGeneration < d.Generation {
		return "the deployment is not observed"
	}
	for i := range machineSets {
		if s := machineSets[i]; s.Status.ObservedGeneration < s.Generation {
			return s.Name + " is not observed"
		}
	}
	for i := range machines {
		if machines[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := ownership.CheckRemoval(t.Context(), l, &machines[i]); err != nil {
			return err.Error()
		}
	}
	return ""
}

// told is what a wave does to each set. The names of Machines are left out where a forecast cannot
// know them.
func told(wave forecast.Wave, known map[string]snapshot) map[string]string {
	sets := map[string]string{}
	for _, c := range wave.Changes {
		if c.Deleted {
			sets[c.Set] = "deleted"
			continue
		}
		sets[c.Set] = tell(c.From, c.To, c.Create, c.Delete, known[c.Set].live)
	}
	return sets
}

// difference is what has happened to each set.
func difference(before, after, known map[string]snapshot) map[string]string {
	sets := map[string]string{}
	for name := range before {
		if _, ok := after[name]; !ok {
			sets[name] = "deleted"
		}
	}
	for name, is := range after {
		was, key := before[name], name
		if _, ok := known[name]; !ok {
			key = forecast.NewSet
		}
		created := len(is.live) + len(is.deleting) - len(was.live) - len(was.deleting)
		gone := slices.DeleteFunc(slices.Clone(is.deleting), func(m string) bool { return slices.Contains(was.deleting, m) })
		if _, ok := before[name]; !ok || is.size != was.size || created > 0 || len(gone) > 0 {
			sets[key] = tell(was.size, is.size, created, gone, known[name].live)
		}
	}
	return sets
}

func tell(from, to int32, created int, deleted, known []string) string {
	names := slices.Clone(deleted)
	for i := range names {
		if !slices.Contains(known, names[i]) {
			names[i] = "another"
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("%d→%d, +%d, -%v", from, to, created, names)
}

// pass has everything happen that is under way.
func (l *lockstep) pass(t *testing.T) {
	t.Helper()
	_, _, machines := l.read(t, l.Cluster)
	for i := range machines {
		m := &machines[i]
		var err error
		switch {
		case !m.DeletionTimestamp.IsZero():
			before := m.DeepCopy()
			m.Finalizers = nil
			err = l.Patch(t.Context(), m, client.MergeFrom(before))
		case m.Status.NodeRef == nil:
			m.Status.Phase = clusterv1alpha1.MachinePhaseRunning
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
			controllertest.SetReady(m, true)
			err = l.Status().Update(t.Context(), m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// changed is what was changed, what a forecast says of it, and what there was before.
type changed struct {
	what     string
	deletes  bool
	forecast forecast.Forecast
	before   map[string]snapshot
}

// change changes the deployment, its Machines or both at random. A Machine is deleted only where
// nothing else happens: else its set and the deployment both want what it leaves, and either may be
// the first.
func (l *lockstep) change(t *testing.T, random *rand.Rand, md *clusterv1alpha1.MachineDeployment, isComplete bool) changed {
	t.Helper()
	var c changed
	l.alone(t, func() {
		_, _, machines := l.read(t, l.Cluster)
		machines = slices.DeleteFunc(machines, func(m clusterv1alpha1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
		var told []string
		kind := random.IntN(10)
		c.deletes = kind == 0 && isComplete
		if len(machines) > 0 && (c.deletes || kind == 1 || kind == 2) {
			told = append(told, l.changeMachine(t, kind, &machines[random.IntN(len(machines))]))
		}
		for range 1 + random.IntN(2) {
			if !c.deletes {
				controllertest.Patch(t, l.Cluster, md, func(md *clusterv1alpha1.MachineDeployment) { told = append(told, changeSpec(random, &md.Spec)) })
			}
		}
		c.what, c.forecast, c.before = strings.Join(told, ", "), l.forecast(t), l.look(t)
	})
	return c
}

func (l *lockstep) changeMachine(t *testing.T, kind int, m *clusterv1alpha1.Machine) string {
	t.Helper()
	switch kind {
	case 0:
		if err := l.Delete(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		return "delete " + m.Name
	case 1:
		controllertest.Patch(t, l.Cluster, m, func(m *clusterv1alpha1.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1alpha1.DeleteMachineAnnotation, "true")
		})
		return "mark " + m.Name
	default:
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
		controllertest.SetReady(m, false)
		if err := l.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		return "break " + m.Name
	}
}

func changeSpec(random *rand.Rand, spec *clusterv1alpha1.MachineDeploymentSpec) string {
	switch random.IntN(8) {
	case 0, 1:
		spec.Replicas = new(random.Int32N(6))
		return fmt.Sprintf("%d replicas", *spec.Replicas)
	case 2, 3, 4:
		spec.Template.Spec.Versions.Kubelet = fmt.Sprintf("1.36.%d", random.IntN(3))
		return "kubelet " + spec.Template.Spec.Versions.Kubelet
	case 5:
		surge, unavailable := intstr.FromInt32(random.Int32N(3)), intstr.FromInt32(1+random.Int32N(2))
		spec.Strategy.Type = clusterv1alpha1.RollingUpdateStrategy
		spec.Strategy.RollingUpdate = &clusterv1alpha1.MachineRollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}
		return fmt.Sprintf("maxSurge %s, maxUnavailable %s", surge.String(), unavailable.String())
	case 6:
		spec.Strategy.RollingUpdate = nil
		spec.Strategy.Type = []clusterv1alpha1.MachineDeploymentStrategyType{
			clusterv1alpha1.RollingUpdateStrategy, clusterv1alpha1.RecreateStrategy, clusterv1alpha1.OnDeleteStrategy,
		}[random.IntN(3)]
		return string(spec.Strategy.Type)
	default:
		spec.Paused = !spec.Paused
		return fmt.Sprintf("paused %t", spec.Paused)
	}
}
