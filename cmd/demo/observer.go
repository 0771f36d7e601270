package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// observer follows the cluster by watches of its own, tells what changes, and keeps the worst it
// has seen. A watch delivers the changes of one kind in the order in which they happened, so no dip
// in a count is missed.
type observer struct {
	out   io.Writer
	start time.Time

	// ledger and patience are set before anything is awaited.
	ledger   *ledger
	patience time.Duration

	mu      sync.Mutex
	changed chan struct{}

	machines map[string]*clusterv1alpha1.Machine
	nodes    map[string]bool // by name: available
	pods     map[string]bool // by name: healthy
	everUIDs map[string]bool // of each Machine that ever was

	watching    bool
	lowestNodes int
	lowestPods  int
}

func newObserver(out io.Writer) *observer {
	return &observer{
		out:      out,
		start:    time.Now(),
		changed:  make(chan struct{}),
		machines: map[string]*clusterv1alpha1.Machine{},
		nodes:    map[string]bool{},
		pods:     map[string]bool{},
		everUIDs: map[string]bool{},
	}
}

// follow starts the watches; they end with ctx.
func (o *observer) follow(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register API types: %w", err)
		}
	}
	watches, err := cache.New(config, cache.Options{
		Scheme:   scheme,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Namespaces: map[string]cache.Config{namespace: {}}}},
	})
	if err != nil {
		return fmt.Errorf("make the watches: %w", err)
	}
	for _, kind := range []client.Object{&clusterv1alpha1.Machine{}, &corev1.Node{}, &corev1.Pod{}} {
		informer, err := watches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc:    o.saw,
			UpdateFunc: func(_, object any) { o.saw(object) },
			DeleteFunc: o.lost,
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	go func() { _ = watches.Start(ctx) }() // It fails only when it is started twice.
	if !watches.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return nil
}

func (o *observer) saw(object any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch object := object.(type) {
	case *clusterv1alpha1.Machine:
		o.sawMachine(object)
	case *corev1.Node:
		o.nodes[object.Name] = nodeAvailable(object)
	case *corev1.Pod:
		o.pods[object.Name] = podHealthy(object)
	}
	o.note()
}

func (o *observer) lost(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch object := object.(type) {
	case *clusterv1alpha1.Machine:
		delete(o.machines, object.Name)
		o.tell("machine %s  gone", object.Name)
	case *corev1.Node:
		delete(o.nodes, object.Name)
	case *corev1.Pod:
		delete(o.pods, object.Name)
	}
	o.note()
}

func (o *observer) sawMachine(machine *clusterv1alpha1.Machine) {
	before, known := o.machines[machine.Name]
	o.machines[machine.Name] = machine
	if machine.Spec.MachineUID != nil {
		o.everUIDs[*machine.Spec.MachineUID] = true
	}
	phase := machine.Status.Phase
	if known && before.Status.Phase == phase {
		return
	}
	detail := ""
	if machine.Status.NodeRef != nil && phase == clusterv1alpha1.MachinePhaseRunning {
		detail = "  node " + machine.Status.NodeRef.Name + " Ready"
	}
	switch {
	case phase == "":
	case !known || before.Status.Phase == "":
		o.tell("machine %s  %s%s", machine.Name, phase, detail)
	default:
		o.tell("machine %s  %s → %s%s", machine.Name, before.Status.Phase, phase, detail)
	}
}

// note keeps the worst counts and wakes who waits. It needs o.mu held.
func (o *observer) note() {
	o.ledger.look()
	if o.watching {
		o.lowestNodes = min(o.lowestNodes, count(o.nodes))
		o.lowestPods = min(o.lowestPods, count(o.pods))
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// keepWorst starts to keep the lowest counts of available Nodes and healthy pods, from the present
// ones.
func (o *observer) keepWorst() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watching, o.lowestNodes, o.lowestPods = true, count(o.nodes), count(o.pods)
}

// worst ends keepWorst and returns what it found.
func (o *observer) worst() (nodes, pods int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watching = false
	return o.lowestNodes, o.lowestPods
}

// names returns the names of the present machines.
func (o *observer) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.machines))
}

func (o *observer) machinesEver() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.everUIDs)
}

// await returns when met holds; it is asked after each change, with o.mu held. The error of a wait
// that took too long tells what the Machines say.
func (o *observer) await(ctx context.Context, what string, met func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	for {
		o.mu.Lock()
		done, changed := met(), o.changed
		o.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w%s", what, context.Cause(ctx), o.machineStories())
		}
	}
}

// running counts Machines that are Running; needs o.mu held, as await gives.
func (o *observer) running() int {
	n := 0
	for _, machine := range o.machines {
		if machine.Status.Phase == clusterv1alpha1.MachinePhaseRunning && machine.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n
}

func (o *observer) machineStories() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for name, machine := range o.machines {
		ready := meta.FindStatusCondition(machine.Status.Conditions, clusterv1alpha1.ConditionReady)
		if ready == nil {
			fmt.Fprintf(&b, "\n  machine %s: %s", name, machine.Status.Phase)
			continue
		}
		fmt.Fprintf(&b, "\n  machine %s: %s, %s: %s", name, machine.Status.Phase, ready.Reason, ready.Message)
	}
	return b.String()
}

func (o *observer) tell(format string, args ...any) {
	fmt.Fprintf(o.out, "%6.1fs  %s\n", time.Since(o.start).Seconds(), fmt.Sprintf(format, args...))
}

func count(of map[string]bool) int {
	n := 0
	for _, good := range of {
		if good {
			n++
		}
	}
	return n
}

// nodeAvailable is what an application can count on: Ready, and open for pods.
func nodeAvailable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || !node.DeletionTimestamp.IsZero() {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podHealthy counts as the disruption controller does: Ready and not on its way out.
func podHealthy(pod *corev1.Pod) bool {
	if !pod.DeletionTimestamp.IsZero() {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
