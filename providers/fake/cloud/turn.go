package cloud

import (
	"context"
	"errors"
	"math"
	"time"

	"google.golang.org/grpc/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
)

// The points of a call at which faults strike.
const (
	beforeEffect = backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT
	afterEffect  = backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
)

// request is what is the same in all calls.
type request struct {
	operation string
	key       string
	// tags say whose call it is; where there are none, the resource's do.
	tags     map[string]string
	resource string
}

// turn is a call under way.
type turn struct {
	*call
	account string
	latency time.Duration
	faults  []*fault
}

// changed notes that the call took effect on a resource.
func (t *turn) changed(id string) {
	t.Resource, t.Done = id, true
}

// plan sets what becomes of a new VM.
func (t *turn) plan(v *vm) {
	for _, f := range t.faults {
		switch f.GetEffect() {
		case backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS:
			v.BootFault = bootsForever
		case backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS:
			v.BootFault = "The vm did not boot."
			if words := f.GetError().GetMessage(); words != "" {
				v.BootFault = words
			}
		}
	}
}

// horizon is the seq of the last resource that a list may hold.
func (t *turn) horizon() int64 {
	last := int64(math.MaxInt64)
	for _, f := range t.faults {
		if f.forList() {
			last = min(last, f.seq)
		}
	}
	return last
}

// do makes a call: it notes it, lets faults strike, and calls effect once, under the lock. It returns the account that
// the key opens. Only the end of the cloud keeps a call from its effect; the end of ctx does not.
func (c *Cloud) do(ctx context.Context, r request, effect func(*turn) error) (string, error) {
	t := c.receive(r)
	stop := context.AfterFunc(ctx, func() { c.abandon(t) })
	err := c.run(ctx, t, r.key, effect)
	stop()
	c.answer(ctx, t, err)
	return t.account, err
}

// receive notes a new call and chooses its faults.
func (c *Cloud) receive(r request) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	whose := record{Tags: r.tags}
	if len(r.tags) == 0 {
		whose = c.lookup(r.resource)
	}
	t := &turn{
		call: &call{
			Operation: r.operation, ClusterUID: whose.clusterUID(), MachineUID: whose.machineUID(),
			Resource: r.resource, Progress: received, Received: now(),
		},
		latency: draw(c.faults.dice, c.options.MinCallLatency, c.options.MaxCallLatency),
	}
	t.faults = c.faults.choose(t.call)
	for _, f := range t.faults {
		t.Faults = append(t.Faults, f.GetId())
	}
	c.calls.begin(t.call)
	c.wake()
	c.report(c.write(entry{Call: t.call}))
	return t
}

// lookup returns what is known of a resource, nothing when it is not there.
func (c *Cloud) lookup(id string) record {
	if v := c.alive.byID[id]; v != nil {
		return v.record
	}
	if n := c.nics.byID[id]; n != nil {
		return n.record
	}
	return record{}
}

func (c *Cloud) run(ctx context.Context, t *turn, key string, effect func(*turn) error) error {
	if err := c.strike(ctx, t, beforeEffect); err != nil {
		return err
	}
	if err := c.takeEffect(t, key, effect); err != nil {
		return err
	}
	return c.strike(ctx, t, afterEffect)
}

func (c *Cloud) takeEffect(t *turn, key string, effect func(*turn) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return errBroken
	}
	account, known := c.options.Accounts[key]
	if !known {
		return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "key", "The request you have made requires authentication.")
	}
	t.account = account
	if err := effect(t); err != nil {
		return err
	}
	t.DoneAt = now()
	if t.Progress == received {
		t.Progress = done
	}
	return c.progress(t)
}

// progress publishes how far the call is.
func (c *Cloud) progress(t *turn) error {
	c.calls.update(t.call)
	c.wake()
	return c.write(entry{Call: t.call})
}

// abandon notes that the caller has gone.
func (c *Cloud) abandon(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Progress == answered || t.Progress == abandoned {
		return
	}
	t.Progress = abandoned
	c.report(c.progress(t))
}

// answer notes the end of the call.
func (c *Cloud) answer(ctx context.Context, t *turn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Answered = now()
	s := status.Convert(err)
	t.Code, t.Message = int32(s.Code()), s.Message()
	t.Progress = answered
	if ctx.Err() != nil || errors.Is(err, errBroken) {
		t.Progress = abandoned
	}
	c.report(c.progress(t))
}

// strike lets everything happen that is due at this point of the call.
func (c *Cloud) strike(ctx context.Context, t *turn, point backendv1alpha1.FaultPoint) error {
	if err := c.pass(t.latency / 2); err != nil {
		return err
	}
	for _, f := range t.faults {
		if f.forVM() || f.forList() || f.at() != point {
			continue
		}
		if err := c.suffer(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// at is where in a call the fault strikes.
func (f *fault) at() backendv1alpha1.FaultPoint {
	switch f.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG:
		return beforeEffect
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST:
		return afterEffect
	default:
		return f.GetPoint()
	}
}

// suffer lets one fault strike.
func (c *Cloud) suffer(ctx context.Context, f *fault) error {
	switch f.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY:
		c.mu.Lock()
		latency := f.latency()
		c.mu.Unlock()
		return c.pass(latency)
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR:
		return injected(f.GetError())
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD:
		return c.hold(f)
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG:
		return c.hang(ctx, f)
	default:
		return errBroken
	}
}

// pass lets time pass.
func (c *Cloud) pass(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.closed:
		return errBroken
	}
}

// hold waits until the fault is removed.
func (c *Cloud) hold(f *fault) error {
	select {
	case <-f.removed:
		return nil
	case <-c.closed:
		return errBroken
	}
}

// hang waits until the caller gives up or the fault is removed; nobody gets an answer.
func (c *Cloud) hang(ctx context.Context, f *fault) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-f.removed:
	case <-c.closed:
	}
	return errBroken
}
