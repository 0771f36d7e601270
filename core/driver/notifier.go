package driver

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// alarm hands wake-ups to one reader without ever making a caller wait: wake-ups of one machine that were not read yet are one.
type alarm struct {
	events chan event.GenericEvent

	mu      sync.Mutex
	pending map[types.NamespacedName]struct{}
	rung    chan struct{}
}

func newAlarm() *alarm {
	return &alarm{
		events:  make(chan event.GenericEvent),
		pending: map[types.NamespacedName]struct{}{},
		rung:    make(chan struct{}, 1),
	}
}

// ring wakes the machines.
func (a *alarm) ring(machines ...types.NamespacedName) {
	if len(machines) == 0 {
		return
	}
	a.mu.Lock()
	for _, machine := range machines {
		a.pending[machine] = struct{}{}
	}
	a.mu.Unlock()
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// run passes wake-ups on until ctx ends.
func (a *alarm) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.rung:
		}
		for _, machine := range a.take() {
			object := &metav1.PartialObjectMetadata{}
			object.Namespace, object.Name = machine.Namespace, machine.Name
			select {
			case <-ctx.Done():
				return
			case a.events <- event.GenericEvent{Object: object}:
			}
		}
	}
}

func (a *alarm) take() []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	machines := make([]types.NamespacedName, 0, len(a.pending))
	for machine := range a.pending {
		machines = append(machines, machine)
	}
	clear(a.pending)
	return machines
}
