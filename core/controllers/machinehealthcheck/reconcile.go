package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/healthcheck"
	"github.com/millwright-dev/millwright/core/requeue"
)

// recorder makes events.
type recorder = events.EventRecorder

// The reasons of events but for those of conditions, and their actions.
const (
	eventRestricted = "RemediationRestricted"
	actionCheck     = "CheckHealth"
)

// maxListed is how many unhealthy Machines the status of a check names.
const maxListed = 32

// Reconcile looks at all Machines of the namespace that has the request's name.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	verdict := healthcheck.Decide(o.state)
	if len(verdict.Memory) == 0 {
		delete(r.memories, o.namespace)
	} else {
		r.memories[o.namespace] = verdict.Memory
	}
	again, err := r.want(ctx, o, verdict.Findings)
	if err != nil {
		return ctrl.Result{}, err
	}
	verdict.Again = earliest.Delay(verdict.Again, again)
	var errs []error
	for _, m := range o.machines {
		errs = append(errs, r.show(ctx, m, verdict.Findings[string(m.UID)]))
	}
	for i := range o.checks {
		errs = append(errs, r.report(ctx, o, &o.checks[i], verdict.Checks[i], verdict.Findings))
	}
	err = errors.Join(errs...)
	if isConflict := slices.ContainsFunc(errs, apierrors.IsConflict); isConflict {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	return requeue.Result(verdict.Again, err)
}

// want says which Machines sets are to replace, before anything is written: what is not wanted any
// more is not replaced though its condition still says so. A finding about a Node that the API
// server itself does not confirm is dropped, and looked at again.
func (r *reconciler) want(ctx context.Context, o *observation, findings map[string]healthcheck.Finding) (again time.Duration, err error) {
	wanted := map[types.UID]bool{}
	// Also where the API server does not answer: what was wanted before may be well again.
	defer func() { r.Remediation.Set(o.namespace, wanted) }()
	for _, m := range o.machines {
		f := findings[string(m.UID)]
		if !f.Replace() {
			continue
		}
		isConfirmed := health.IsToBeReplaced(m)
		if !isConfirmed {
			if isConfirmed, err = r.confirm(ctx, m, f); err != nil {
				return 0, err
			}
		}
		if !isConfirmed {
			delete(findings, string(m.UID))
			again = requeue.Soon
			continue
		}
		wanted[m.UID] = true
	}
	return again, nil
}

// confirm asks the API server whether the Machine's Node still has the condition, or is still not
// there: a watch may lag behind for longer than any timeout.
func (r *reconciler) confirm(ctx context.Context, m *clusterv1alpha1.Machine, f healthcheck.Finding) (bool, error) {
	if r.liveNodes == nil {
		return true, nil
	}
	node := &corev1.Node{}
	if f.Reason == clusterv1alpha1.ReasonNodeStartupTimeout {
		// Then the Machine's controller has seen a Node, and cannot take it.
		if nodeReason(m) == clusterv1alpha1.ReasonNodeConflict {
			return true, nil
		}
		// Most Nodes have the Machine's name. One that is found by other signs is not asked for.
		err := r.liveNodes.Get(ctx, client.ObjectKey{Name: m.Name}, node)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if f.NodeCondition.Type == "" {
		return true, nil
	}
	if err := r.liveNodes.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return string(c.Type) == f.NodeCondition.Type && metav1.ConditionStatus(c.Status) == f.NodeCondition.Status
	}), nil
}

// nodeReason is the reason of the Machine's condition NodeReady; empty where it has none.
func nodeReason(m *clusterv1alpha1.Machine) string {
	if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady); c != nil {
		return c.Reason
	}
	return ""
}

// show writes what was found of a Machine into its conditions, if it is news.
func (r *reconciler) show(ctx context.Context, cached *clusterv1alpha1.Machine, f healthcheck.Finding) error {
	if !cached.DeletionTimestamp.IsZero() {
		return nil
	}
	isKnown := apimeta.FindStatusCondition(cached.Status.Conditions, clusterv1alpha1.ConditionHealthCheckSucceeded) != nil
	if !isKnown && f.Reason == "" {
		return nil
	}
	m := cached.DeepCopy()
	if !setConditions(&m.Status.Conditions, f, m.Generation) {
		return nil
	}
	// A merge patch replaces the whole list: the lock keeps it from undoing another write.
	patch := client.MergeFromWithOptions(cached, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, m, patch); err != nil {
		if apierrors.IsConflict(err) {
			return err
		}
		return client.IgnoreNotFound(fmt.Errorf("write the conditions of Machine %s: %w", m.Name, err))
	}
	if !isKnown {
		r.found.Inc()
		r.events.Eventf(m, nil, corev1.EventTypeWarning, f.Reason, actionCheck, "%s %s", f.Message, f.RemediationMessage)
	}
	return nil
}

// setConditions sets what was found, or removes it where nothing was. It says whether that changed
// anything.
func setConditions(conditions *[]metav1.Condition, f healthcheck.Finding, generation int64) bool {
	if f.Reason == "" {
		removed := apimeta.RemoveStatusCondition(conditions, clusterv1alpha1.ConditionHealthCheckSucceeded)
		return apimeta.RemoveStatusCondition(conditions, clusterv1alpha1.ConditionOwnerRemediated) || removed
	}
	remediated := metav1.ConditionUnknown
	if f.Replace() {
		remediated = metav1.ConditionFalse
	}
	found := apimeta.SetStatusCondition(conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionHealthCheckSucceeded, Status: metav1.ConditionFalse,
		Reason: f.Reason, Message: f.Message, ObservedGeneration: generation,
	})
	return apimeta.SetStatusCondition(conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionOwnerRemediated, Status: remediated,
		Reason: f.Remediation, Message: f.RemediationMessage, ObservedGeneration: generation,
	}) || found
}

// report writes the status of a check, if it has changed.
func (r *reconciler) report(
	ctx context.Context, o *observation, cached *clusterv1alpha1.MachineHealthCheck, result healthcheck.Result, findings map[string]healthcheck.Finding,
) error {
	check := cached.DeepCopy()
	check.Status.ObservedGeneration = check.Generation
	check.Status.ExpectedMachines, check.Status.CurrentHealthy = int32(result.Expected), int32(result.Healthy)
	check.Status.UnhealthyMachines = listUnhealthy(o, result, findings)
	allowed := metav1.Condition{
		Type: clusterv1alpha1.ConditionRemediationAllowed, Status: metav1.ConditionTrue, ObservedGeneration: check.Generation,
		Reason: clusterv1alpha1.ReasonWithinLimits, Message: "Unhealthy machines are replaced.",
	}
	if err := o.invalid[check.Name]; err != nil {
		result.Restriction, result.Message = clusterv1alpha1.ReasonCheckInvalid, err.Error()
	}
	if result.Restriction != "" {
		allowed.Status, allowed.Reason = metav1.ConditionFalse, result.Restriction
		allowed.Message = "No unhealthy machine is replaced: " + result.Message
	}
	apimeta.SetStatusCondition(&check.Status.Conditions, allowed)
	if apiequality.Semantic.DeepEqual(cached.Status, check.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, check, client.MergeFrom(cached)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of MachineHealthCheck %s: %w", check.Name, err))
	}
	before := apimeta.FindStatusCondition(cached.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
	if result.Restriction != "" && (before == nil || before.Reason != result.Restriction) {
		r.events.Eventf(check, nil, corev1.EventTypeWarning, eventRestricted, actionCheck, "%s", allowed.Message)
	}
	return nil
}

// listUnhealthy lists the first of the unhealthy Machines by name, and what is done about each.
func listUnhealthy(o *observation, result healthcheck.Result, findings map[string]healthcheck.Finding) []clusterv1alpha1.UnhealthyMachine {
	var listed []clusterv1alpha1.UnhealthyMachine
	for _, m := range o.machines {
		if f := findings[string(m.UID)]; result.Unhealthy[string(m.UID)] {
			listed = append(listed, clusterv1alpha1.UnhealthyMachine{Name: m.Name, Reason: f.Reason, Remediation: f.Remediation})
		}
	}
	slices.SortFunc(listed, func(a, b clusterv1alpha1.UnhealthyMachine) int { return strings.Compare(a.Name, b.Name) })
	return listed[:min(len(listed), maxListed)]
}
