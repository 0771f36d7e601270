package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/drain"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/core/ownership"
)

// machineTag is the tag that tells, in the cloud's own console, which Machine a VM is.
const machineTag = "cluster.k8s.io/machine"

// maxNames is how many bytes of what is waited for a condition names.
const maxNames = 1024

// apply does what a step says and brings the scope up to date. It returns true when there is
// nothing more to do now.
func (r *reconciler) apply(ctx context.Context, s *machineScope, step lifecycle.Step) (waits bool, err error) {
	switch step.Do {
	case lifecycle.Nothing:
		waits = true
		if err = r.confirmNoNode(ctx, s, step); err != nil {
			break
		}
		s.poll(step.Poll)
		err = r.writeStatus(ctx, s, step)
	case lifecycle.Identify:
		err = r.identify(ctx, s)
	case lifecycle.DeleteNow:
		waits, err = true, r.deleteMachine(ctx, s)
	case lifecycle.Create, lifecycle.Delete:
		return r.mutate(ctx, s, step)
	case lifecycle.RenewToken, lifecycle.DeleteToken:
		if err = r.userData.tokens.apply(ctx, s, step.Do); apierrors.IsForbidden(err) {
			// Nothing follows from that for the machine, so that its status does not tell.
			r.events.Eventf(s.machine, nil, corev1.EventTypeWarning, "BootstrapTokenForbidden", string(step.Do), "%s", messages.EventNote(err.Error()))
		}
	case lifecycle.RecordProviderID:
		err = r.recordProviderID(ctx, s, step.ProviderID)
	case lifecycle.ReadConsole:
		err = r.userData.readConsole(ctx, s)
	case lifecycle.SyncNode, lifecycle.CheckDaemonSets, lifecycle.DrainNode, lifecycle.CheckVolumes, lifecycle.RemoveNode:
		err = r.applyToNode(ctx, s, step)
	case lifecycle.Release:
		waits, err = r.release(ctx, s)
	}
	if err == nil && (waits || step.Do != lifecycle.Release) {
		r.recordEvents(s, step)
	}
	return waits, err
}

// applyToNode does what a step says about the Node.
func (r *reconciler) applyToNode(ctx context.Context, s *machineScope, step lifecycle.Step) error {
	switch step.Do {
	case lifecycle.SyncNode:
		return s.syncNode(ctx, r.nodes, step.Admit)
	case lifecycle.CheckDaemonSets:
		return s.checkDaemonSets(ctx, r.daemonSets)
	case lifecycle.DrainNode:
		return r.drainPass(ctx, s)
	case lifecycle.CheckVolumes:
		return s.checkVolumes(ctx, r.drainer)
	}
	err := r.nodes.remove(ctx, s.node)
	if err == nil {
		s.takeNode(match{})
	}
	return err
}

// syncNode brings the Node up to what the Machine wants on it. With admit the start-up taints go in
// the same write.
func (s *machineScope) syncNode(ctx context.Context, nodes nodeClient, admit bool) error {
	s.joining.admit = admit
	node, err := nodes.sync(ctx, s.node, s.wantedNode())
	s.joining.admit = false
	if err != nil {
		return err
	}
	s.memory.node = node
	s.takeNode(match{node: node})
	s.state.Node.Synced = true
	return nil
}

// confirmNoNode asks the API server for the Node of a machine that is about to be given up for
// want of one. It returns an error if there is a Node that only the cache does not show. The
// reason is that a watch may be interrupted for longer than the API server was away. It may also be
// that an earlier process has deleted the token when the Node came.
func (r *reconciler) confirmNoNode(ctx context.Context, s *machineScope, step lifecycle.Step) error {
	why := step.Status.Condition(clusterv1alpha1.ConditionNodeReady).Reason
	givenUp := step.Status.Phase == clusterv1alpha1.MachinePhaseFailed && s.machine.Status.Phase != step.Status.Phase &&
		(why == clusterv1alpha1.ReasonJoinTimeout || why == clusterv1alpha1.ReasonTokenMissing)
	if !givenUp || s.state.Node.Match != lifecycle.NodeNone {
		return nil
	}
	late, err := r.nodes.findLate(ctx, s.nodeName())
	if late != nil && choose(s.machine, s.state.KnownIDs(), []*corev1.Node{late}).node != nil {
		return fmt.Errorf("the cache does not show Node %s", late.Name)
	}
	return err
}

// poll has the driver poll the VM as often as it should.
func (s *machineScope) poll(interval instance.PollInterval) {
	if s.driver == nil || s.state.Machine.UID == "" || s.state.Machine.UIDTaken != "" {
		return
	}
	if s.provision.refused() {
		interval = instance.PollNever
	}
	if s.provision.trouble != nil && interval != instance.PollNever {
		// With other credentials than its own every VM would look gone.
		return
	}
	if interval == instance.PollNever {
		s.driver.Untrack(s.key(), s.state.Machine.UID)
		return
	}
	s.driver.Track(s.driverRequest(), interval)
}

// writeStatus writes the status, if it is to be written. It fails on a Machine that has changed
// since it was read: what was decided about the old one does not count.
func (r *reconciler) writeStatus(ctx context.Context, s *machineScope, step lifecycle.Step) error {
	if !step.Write {
		return nil
	}
	was := s.machine.Status
	s.recordRefusedSpec(step)
	status := clusterv1alpha1.MachineStatus(step.Status)
	// What the machine is made from is written down while a step is applied.
	status.ProviderSpec = s.machine.Status.ProviderSpec
	for i, c := range status.Conditions {
		status.Conditions[i].Message = conditions.TruncateMessage(c.Message)
	}
	s.machine.Status = status
	if err := r.client.Status().Update(ctx, s.machine); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	s.takeWritten()
	r.measures.recordStatus(s.machine, &was, s.state.Now)
	return nil
}

// takeWritten takes over what the API server made of a write to the Machine.
func (s *machineScope) takeWritten() {
	s.memory.version = s.machine.ResourceVersion
	s.state.Machine.Status, s.state.Machine.Generation = lifecycle.Status(s.machine.Status), s.machine.Generation
}

// patchMachine writes what change does to the Machine. locked: only if nobody else has written to
// it since.
func (r *reconciler) patchMachine(ctx context.Context, s *machineScope, locked bool, change func(*clusterv1alpha1.Machine)) error {
	patch := client.MergeFrom(s.machine.DeepCopy())
	if locked {
		patch = client.MergeFromWithOptions(s.machine.DeepCopy(), client.MergeFromWithOptimisticLock{})
	}
	change(s.machine)
	if err := r.client.Patch(ctx, s.machine, patch); err != nil {
		return err
	}
	s.takeWritten()
	return nil
}

// identify sets finalizer and machineUID of a Machine that came without, as those of sets do not.
func (r *reconciler) identify(ctx context.Context, s *machineScope) error {
	err := r.patchMachine(ctx, s, true, func(m *clusterv1alpha1.Machine) {
		controllerutil.AddFinalizer(m, clusterv1alpha1.MachineFinalizer)
		if m.Spec.MachineUID == nil {
			m.Spec.MachineUID = new(string(uuid.NewUUID()))
		}
	})
	if err != nil {
		return fmt.Errorf("set finalizer and machineUID: %w", err)
	}
	s.state.Machine.Finalizer, s.state.Machine.UID = true, *s.machine.Spec.MachineUID
	return nil
}

func (r *reconciler) recordProviderID(ctx context.Context, s *machineScope, id string) error {
	err := r.patchMachine(ctx, s, false, func(m *clusterv1alpha1.Machine) { m.Spec.ProviderID = &id })
	if err != nil {
		return fmt.Errorf("set spec.providerID: %w", err)
	}
	s.state.Machine.ProviderID = id
	found, err := r.nodes.find(ctx, s.machine, s.state.KnownIDs(), s.nodeName())
	if err != nil {
		return err
	}
	s.takeNode(found)
	return nil
}

// mutate starts a create or delete, once its turn has come and the status is written.
func (r *reconciler) mutate(ctx context.Context, s *machineScope, step lifecycle.Step) (waits bool, err error) {
	if err := r.prepare(ctx, s, &step); err != nil {
		return false, s.notStarted(step, err)
	}
	if ready, err := r.userData.readOwn(ctx, s, step); err != nil || !ready {
		s.state.Memory.Attempted = ""
		return false, err
	}
	if err := s.driver.Reserve(s.driverRequest(), instance.Operation(step.Do)); err != nil {
		return false, s.notStarted(step, err)
	}
	userData, ready, err := r.userData.forCreate(ctx, s, step)
	if err != nil || !ready {
		s.state.Memory.Attempted = ""
		return false, err
	}
	if err := r.writeStatus(ctx, s, step); err != nil {
		s.state.Memory.Attempted = ""
		return false, err
	}
	r.recordEvents(s, step)
	if step.Do == lifecycle.Create {
		err = s.driver.StartCreate(ctx, s.driverRequest(), userData, map[string]string{machineTag: keyOf(s.machine)})
	} else {
		err = s.driver.StartDelete(ctx, s.driverRequest())
	}
	if err != nil {
		return false, s.notStarted(step, err)
	}
	s.poll(step.Poll)
	return true, nil
}

// notStarted takes over why a call was not started; what to do about it is lifecycle's to say.
func (s *machineScope) notStarted(step lifecycle.Step, err error) error {
	s.state.Memory.Attempted = ""
	known := &s.state.Driver
	failure, failed := errors.AsType[*instance.Failure](err)
	held, isHeld := errors.AsType[*driver.HeldError](err)
	switch {
	case isHeld:
		known.Held = held.Failure
	case errors.Is(err, driver.ErrBusy):
		known.UnderWay = true
	case errors.Is(err, driver.ErrThrottled), errors.Is(err, driver.ErrPreparing):
		known.AwaitsTurn = true
	case failed && failure.Class == instance.Unavailable:
		known.Ready, known.Unready = false, failure.Message
	case failed:
		known.Outcome = &instance.Outcome{
			Operation: instance.Operation(step.Do), Failure: failure, Started: s.state.Now, Ended: s.state.Now,
		}
	default:
		return err
	}
	return nil
}

// drainPass makes one pass over the Node.
func (r *reconciler) drainPass(ctx context.Context, s *machineScope) error {
	node := s.node.DeepCopy()
	progress, err := r.drainer.Pass(ctx, node, annotations.DrainsOneByOne(s.machine))
	if node.ResourceVersion != s.node.ResourceVersion {
		s.node, s.memory.node = node, node
	}
	switch {
	case apierrors.IsNotFound(err):
		s.takeNode(match{})
		return nil
	case apierrors.IsConflict(err), ctx.Err() != nil:
		return err
	case err != nil:
		s.state.Drain = &lifecycle.Drain{Error: err.Error()}
		return nil //nolint:nilerr // lifecycle shows it, tries again, and gives up in time
	}
	s.state.Drain = &lifecycle.Drain{
		Done: progress.Done(), Terminating: progress.Terminating(),
		Blocked: progress.BlockedBy(), Refused: progress.RefusedBy(), Remaining: progress.Remaining(),
		Next: messages.OneLine(progress.Next, maxNames),
	}
	if drain.Silent(node) {
		r.Observed.ReadHeartbeat(ctx, node.Name, s.state.Drain)
	}
	return nil
}

// checkVolumes looks which volumes are attached to the Node.
func (s *machineScope) checkVolumes(ctx context.Context, drainer *drain.Drainer) error {
	names, err := drainer.Attached(ctx, s.node.Name, s.state.Machine.Status.IsDrainSkipped())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.state.Volumes = &lifecycle.Volumes{Attached: messages.OneLine(names, maxNames)}
	if err != nil {
		s.state.Volumes.Error = messages.OneLine(err.Error(), maxNames)
	}
	return nil
}

// release removes the finalizer, if the Machine's set has recorded that its name is used up
// (ownership.CheckRemoval). Before that it looks for a Node that registered so late that the
// cache does not have it.
func (r *reconciler) release(ctx context.Context, s *machineScope) (waits bool, err error) {
	if err := ownership.CheckRemoval(ctx, r.client, s.machine); err != nil {
		return false, err
	}
	if ids := s.state.KnownIDs(); len(ids) > 0 && s.state.Node.Match == lifecycle.NodeNone {
		late, err := r.nodes.findLate(ctx, s.nodeName())
		if err != nil {
			return false, err
		}
		if late != nil && late.DeletionTimestamp.IsZero() {
			s.takeNode(choose(s.machine, ids, []*corev1.Node{late}))
			return false, nil
		}
	}
	err = r.patchMachine(ctx, s, true, func(m *clusterv1alpha1.Machine) {
		controllerutil.RemoveFinalizer(m, clusterv1alpha1.MachineFinalizer)
	})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("remove finalizer: %w", err)
	}
	r.measures.recordRelease(s.machine, s.state.Now)
	// The cache may show the Machine for a while yet: what is remembered goes when that shows it to
	// be gone.
	s.memory.released = true
	return true, nil
}
