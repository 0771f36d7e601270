package machine

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// machineScope is one Machine in a reconcile: what was observed, and the objects it was observed
// on. What is written is brought up to date in both.
type machineScope struct {
	state   lifecycle.State
	machine *clusterv1alpha1.Machine
	node    *corev1.Node
	// driver is nil when there is none for the Machine.
	driver *driver.Driver
	memory *memory
	// provision is what the driver is told besides.
	provision provision
	// rollout is what the rollout of the Machine's set wants of the Node.
	rollout nodeRollout
}

// observe reads everything that lifecycle decides by.
func (r *reconciler) observe(ctx context.Context, m *clusterv1alpha1.Machine, mem *memory, since time.Time) (*machineScope, error) {
	s := &machineScope{machine: m, memory: mem}
	s.state = lifecycle.State{Now: r.Clock.Now(), Machine: r.record(m), Memory: mem.lifecycle}
	s.state.Driver.LeadingSince = since
	var err error
	if s.state.Machine.UIDTaken, err = holderOfUID(ctx, r.client, m); err != nil {
		return nil, err
	}
	if s.state.Machine.UIDTaken != "" {
		// A call that it could be waiting for is not its own.
		mem.leave(s.key())
	}
	if err := r.checkBootstrap(s); err != nil {
		return nil, err
	}
	if err := r.provision(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeDriver(s); err != nil {
		return nil, err
	}
	if err := r.observeNode(ctx, s); err != nil {
		return nil, err
	}
	pause, err := pauseOf(ctx, r.client, m)
	if err != nil {
		return nil, err
	}
	s.state.Machine.Paused, s.state.Machine.DeleteNow = pause, deleteNowOn(m, s.node)
	s.state.Clock = r.observable.reading(s.driver)
	return s, nil
}

// observeNode finds the Node, as our last write left it where the cache does not have that yet.
func (r *reconciler) observeNode(ctx context.Context, s *machineScope) error {
	var err error
	if s.rollout, err = r.observeRollout(ctx, s); err != nil {
		return err
	}
	found, err := r.nodes.find(ctx, s.machine, s.state.KnownIDs(), s.nodeName())
	if err != nil {
		return err
	}
	mem := s.memory
	if written := mem.node; written != nil {
		if found.node != nil && found.node.UID == written.UID && behind(found.node, written.ResourceVersion) {
			found.node = written
		} else {
			mem.node = nil
		}
	}
	s.takeNode(found)
	return nil
}

// record is what stands in the Machine.
func (o Options) record(m *clusterv1alpha1.Machine) lifecycle.Machine {
	record := lifecycle.Machine{
		UID:              ptr.Deref(m.Spec.MachineUID, ""),
		Finalizer:        controllerutil.ContainsFinalizer(m, clusterv1alpha1.MachineFinalizer),
		ProviderID:       ptr.Deref(m.Spec.ProviderID, ""),
		DrainTimeout:     ptr.Deref(m.Spec.NodeDrainTimeout, metav1.Duration{Duration: o.DrainTimeout}).Duration,
		StartupTimeout:   ptr.Deref(m.Spec.NodeStartupTimeout, metav1.Duration{Duration: o.StartupTimeout}).Duration,
		UnreachableAfter: o.NodeUnreachableAfter,
		Status:           lifecycle.Status(m.Status),
		Generation:       m.Generation,
	}
	if !m.DeletionTimestamp.IsZero() {
		record.DeletionTimestamp = m.DeletionTimestamp.Time
		record.Forgotten = isForgotten(m)
	}
	return record
}

// observeDriver asks the Machine's driver what it knows, and takes over how its last call ended.
func (r *reconciler) observeDriver(s *machineScope) error {
	known := &s.state.Driver
	p := &s.provision
	if p.trouble != nil && p.effective.Provider == "" {
		known.Unknown, known.UnknownReason = p.trouble.Message, p.trouble.Reason
		return nil
	}
	d, err := r.Drivers.For(p.effective.Provider)
	if unknown, is := errors.AsType[*driver.UnknownError](err); is {
		known.Unknown = unknown.Error()
		return nil
	}
	if err != nil {
		return err
	}
	s.driver = d
	known.Ready = true
	known.CreateSettle = d.Capabilities().CreateSettle
	known.Trouble = p.trouble
	known.Missing, _ = errors.AsType[*instance.Failure](p.missing)
	uid := s.state.Machine.UID
	if uid == "" || s.state.Machine.UIDTaken != "" {
		return nil
	}
	s.memory.driver, s.memory.uid = d, uid
	outcome, progress := d.Collect(s.key(), uid)
	known.UnderWay = progress == driver.UnderWay
	if progress == driver.Ended {
		known.Outcome = &outcome
	}
	if seen, looked := d.Observed(s.key(), uid); looked {
		known.LastPoll = &seen
	}
	if p.refused() {
		// Nobody is asked about it: that is all there is to see.
		known.LastPoll = &instance.Observation{Failure: p.trouble, At: s.state.Now}
	}
	return nil
}

// nodeName is the name under which the machine's kubelet registers.
func (s *machineScope) nodeName() string {
	if seen := s.state.Driver.LastPoll; seen != nil && seen.Instance != nil && seen.Instance.NodeName != "" {
		return seen.Instance.NodeName
	}
	return s.machine.Name
}

// driverRequest is the machine as its driver is told of it. An id that the driver has not confirmed
// is none of its own: it is not told.
func (s *machineScope) driverRequest() wire.Machine {
	var id string
	if ids := s.state.KnownIDs(); len(ids) > 0 {
		id = ids[0]
	}
	return wire.Machine{
		Namespace:      s.machine.Namespace,
		Name:           s.machine.Name,
		UID:            s.state.Machine.UID,
		ProviderID:     id,
		LastKnownState: s.lastKnownState(),
		Spec:           s.provision.spec(),
		Secrets:        s.provision.secrets,
	}
}

// lastKnownState is the driver's own memory of the machine, as it last gave it; it is not written
// down at once.
func (s *machineScope) lastKnownState() []byte {
	if heard := s.state.Memory.LastKnownState; heard != nil {
		return heard
	}
	return s.machine.Status.LastKnownState
}

// key is the Machine's.
func (s *machineScope) key() client.ObjectKey {
	return client.ObjectKeyFromObject(s.machine)
}
