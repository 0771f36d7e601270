package driver

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// notifier hands wake-ups to one reader without ever making a caller wait: wake-ups of one machine
// that were not read yet are one.
type notifier struct {
	events chan event.GenericEvent
	// statusChanged tells that what Drivers.Statuses says has changed. What nobody has heard yet is
	// told once.
	statusChanged chan struct{}

	mu      sync.Mutex
	pending map[types.NamespacedName]struct{}
	signal  chan struct{}
}

func newNotifier() *notifier {
	return &notifier{
		events:        make(chan event.GenericEvent),
		statusChanged: make(chan struct{}, 1),
		pending:       map[types.NamespacedName]struct{}{},
		signal:        make(chan struct{}, 1),
	}
}

// enqueue wakes the machines.
func (n *notifier) enqueue(machines ...types.NamespacedName) {
	if len(machines) == 0 {
		return
	}
	n.mu.Lock()
	for _, machine := range machines {
		n.pending[machine] = struct{}{}
	}
	n.mu.Unlock()
	signal(n.signal)
}

// signal leaves a value in a channel that has room for one.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// run passes wake-ups on until ctx ends.
func (n *notifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.signal:
		}
		for _, machine := range n.take() {
			object := &metav1.PartialObjectMetadata{}
			object.Namespace, object.Name = machine.Namespace, machine.Name
			select {
			case <-ctx.Done():
				return
			case n.events <- event.GenericEvent{Object: object}:
			}
		}
	}
}

func (n *notifier) take() []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	machines := make([]types.NamespacedName, 0, len(n.pending))
	for machine := range n.pending {
		machines = append(machines, machine)
	}
	clear(n.pending)
	return machines
}
