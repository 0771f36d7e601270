package machine

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/apiserver"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
)

// maxSteps bounds how many steps one reconcile takes; a life has fewer.
const maxSteps = 12

// undecidedBackoff are the pauses while a Machine may not go for its set's sake.
var undecidedBackoff = instance.Backoff{First: requeue.Soon, Last: 5 * time.Second}

// Reconcile brings one Machine as far as it gets without waiting. It is a span of its trace.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	ctx, span := r.tracer.Start(ctx, "reconcile Machine", trace.WithAttributes(
		attribute.String("millwright.machine.namespace", req.Namespace), attribute.String("millwright.machine.name", req.Name)))
	defer span.End()
	if result, err = r.reconcile(ctx, req); err != nil {
		span.SetStatus(codes.Error, "the log says why")
	}
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	m := &clusterv1alpha1.Machine{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		if apierrors.IsNotFound(err) {
			r.memories.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	mem, since := r.memories.get(m, r.Clock.Now())
	if wait, err := r.behind(ctx, m, mem); err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if why, err := r.foreigners.WhyMachine(ctx, m, r.live); err != nil || why != "" {
		return r.leaveAlone(ctx, m, mem, why, err)
	}
	s, err := r.observe(ctx, m, mem, since)
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.advance(ctx, s)
	if errors.Is(err, ownership.ErrNameNotRecorded) {
		mem.undecided++
		return ctrl.Result{RequeueAfter: undecidedBackoff.Nth(mem.undecided)}, nil
	}
	mem.undecided = 0
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("Machine or Node changed meanwhile", "error", err)
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	return result, err
}

// advance takes steps until there is nothing to do but wait.
func (r *reconciler) advance(ctx context.Context, s *machineScope) (ctrl.Result, error) {
	defer func() { s.memory.lifecycle = s.state.Memory }()
	for range maxSteps {
		step := lifecycle.Next(s.state)
		s.state.Memory, s.state.Driver.Outcome = step.Memory, nil
		waits, err := r.apply(ctx, s, step)
		if err != nil {
			return ctrl.Result{}, err
		}
		if waits {
			return s.waitFor(step), nil
		}
	}
	log.FromContext(ctx).Error(nil, "Machine took too many steps at once")
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// waitFor is when to come back unless something happens before. The conditions say what is waited
// for.
func (s *machineScope) waitFor(step lifecycle.Step) ctrl.Result {
	after := s.recheckAfter()
	for _, due := range []time.Time{step.RequeueAt, s.rollout.pending} {
		if !due.IsZero() {
			after = earliest.Delay(max(due.Sub(s.state.Now), time.Millisecond), after)
		}
	}
	return ctrl.Result{RequeueAfter: after}
}

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
	// joining is what becomes of a Node that joins.
	joining joining
	// rollout is what the rollout of the Machine's set wants of the Node.
	rollout nodeRollout
	// secretRecheck is Options.SecretRecheck.
	secretRecheck time.Duration
}

// observe reads everything that lifecycle decides by.
func (r *reconciler) observe(ctx context.Context, m *clusterv1alpha1.Machine, mem *memory, since time.Time) (*machineScope, error) {
	s := &machineScope{machine: m, memory: mem, secretRecheck: r.SecretRecheck}
	s.state = lifecycle.State{Now: r.Clock.Now(), Machine: r.record(m), Memory: mem.lifecycle, Token: mem.token}
	s.state.Driver.LeadingSince = since
	var err error
	if s.state.Machine.UIDTaken, err = holderOfUID(ctx, r.client, m); err != nil {
		return nil, err
	}
	if s.state.Machine.UIDTaken != "" {
		// A call that it could be waiting for is not its own.
		mem.leave(s.key())
	}
	if err := r.provision(ctx, s); err != nil {
		return nil, err
	}
	if err := r.checkBootstrap(ctx, s); err != nil {
		return nil, err
	}
	if s.joining.startup, err = r.userData.startupTaints(ctx, m); err != nil {
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
	s.state.Clock = r.Observed.Reading(s.driver)
	return s, nil
}

// observeNode finds the Node, what the rollout wants of it, and how far a VM without one has got.
// Where the cache is older than our last write, it takes what that write returned.
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
		if found.node != nil && found.node.UID == written.UID && apiserver.IsNewer(written.ResourceVersion, found.node.ResourceVersion) {
			found.node = written
		} else {
			mem.node = nil
		}
	}
	s.takeNode(found)
	if r.JoinProgress != nil && s.isComingUp() && found.node == nil {
		s.state.JoinProgress, err = r.JoinProgress(ctx, s.machine)
	}
	return err
}

// isComingUp says whether the status says that there is a VM, or may be, that has yet to join.
func (s *machineScope) isComingUp() bool {
	phase := s.machine.Status.Phase
	return phase == clusterv1alpha1.MachinePhaseProvisioning || phase == clusterv1alpha1.MachinePhaseProvisioned
}

// record is what stands in the Machine.
func (o Options) record(m *clusterv1alpha1.Machine) lifecycle.Machine {
	record := lifecycle.Machine{
		UID:                 ptr.Deref(m.Spec.MachineUID, ""),
		Finalizer:           controllerutil.ContainsFinalizer(m, clusterv1alpha1.MachineFinalizer),
		ProviderID:          ptr.Deref(m.Spec.ProviderID, ""),
		DrainTimeout:        ptr.Deref(m.Spec.NodeDrainTimeout, metav1.Duration{Duration: o.DrainTimeout}).Duration,
		VolumeDetachTimeout: ptr.Deref(m.Spec.NodeVolumeDetachTimeout, metav1.Duration{Duration: o.VolumeDetachTimeout}).Duration,
		StartupTimeout:      ptr.Deref(m.Spec.NodeStartupTimeout, metav1.Duration{Duration: o.StartupTimeout}).Duration,
		UnreachableAfter:    o.NodeUnreachableAfter,
		NodeDebounce:        o.NodeDebounce,
		AwaitsDaemonSets:    len(o.CriticalNamespaces) > 0,
		Nodeless:            o.Workload == nil,
		KubeletVersion:      m.Spec.Versions.Kubelet,
		Status:              lifecycle.Status(m.Status),
		Generation:          m.Generation,
	}
	if !m.DeletionTimestamp.IsZero() {
		record.DeletionTimestamp = m.DeletionTimestamp.Time
		record.Forgotten = isForgotten(m)
		record.PreDrainHooks = messages.OneLine(annotations.Hooks(m, clusterv1alpha1.PreDrainHookAnnotationPrefix), maxNames)
		record.SkipsDrain, record.SkipsVolumes = annotations.SkipsDrain(m), annotations.SkipsVolumes(m)
		record.PreTerminateHooks = messages.OneLine(annotations.Hooks(m, clusterv1alpha1.PreTerminateHookAnnotationPrefix), maxNames)
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
	s.joining.noCloudController = d.Capabilities().NoCloudController
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
	s.observeConsole()
	if p.refused() {
		// Nobody is asked about it: that is all there is to see.
		known.LastPoll = &instance.Observation{Failure: p.trouble, At: s.state.Now}
	}
	return nil
}

// observeConsole takes over what the driver has answered about the VM's console. It is asked only
// with the credentials that the machine should have.
func (s *machineScope) observeConsole() {
	known := &s.state.Driver
	known.ConsoleReadable = s.driver.Capabilities().CanReadConsole() && s.provision.trouble == nil
	known.ConsoleTimeout = s.driver.Capabilities().Deadlines.Status
	known.Console = s.driver.Console(s.key(), s.state.Machine.UID)
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
