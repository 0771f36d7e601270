package machine

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
)

// maxSteps bounds how many steps one reconcile takes; a life has fewer.
const maxSteps = 12

// undecidedBackoff are the pauses while a Machine may not go for its set's sake.
var undecidedBackoff = instance.Backoff{First: requeue.Soon, Last: 5 * time.Second}

// staleAfter is how long the cache may be behind before the API server itself is asked.
const staleAfter = 10 * time.Second

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

// behind returns how long to wait for the cache to show our last write to the Machine; zero when it
// does. The event that brings the cache up to date reconciles earlier. After a restore from a
// backup the API server itself may not have the write any more. Then nothing that was
// remembered of the Machine holds.
func (r *reconciler) behind(ctx context.Context, m *clusterv1alpha1.Machine, mem *memory) (time.Duration, error) {
	now := r.Clock.Now()
	if !mem.ahead(m) {
		mem.behindSince = time.Time{}
		return 0, nil
	}
	if mem.behindSince.IsZero() {
		mem.behindSince = now
	}
	if wait := mem.behindSince.Add(staleAfter).Sub(now); wait > 0 {
		return wait, nil
	}
	actual := &clusterv1alpha1.Machine{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(m), actual); err != nil {
		return staleAfter, client.IgnoreNotFound(err)
	}
	if actual.UID != m.UID || !mem.ahead(actual) {
		return staleAfter, nil
	}
	log.FromContext(ctx).Info("The API server has an older Machine than the one written last; starting over with it")
	mem.startOver()
	return 0, nil
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
			after = requeue.Earlier(max(due.Sub(s.state.Now), time.Millisecond), after)
		}
	}
	return ctrl.Result{RequeueAfter: after}
}
