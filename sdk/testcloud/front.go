package testcloud

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

var (
	// ErrBroken ends a call without a word: its caller sees a connection that broke.
	ErrBroken = status.Error(codes.Unavailable, "the connection was closed before the answer arrived")
	// ErrClosed is what a write gets that comes after the end of the cloud.
	ErrClosed = errors.New("the cloud is closed")
)

// Options are how a front works.
type Options struct {
	// Operations are those of the cloud's own API, as the ledger and faults name them; Effects
	// those of faults that it supports.
	Operations []string
	Effects    []backendv1alpha1.FaultEffect
	// Aliases are what else may stand for a uid in calls, such as a hash of one that is too long.
	// nil means nothing else.
	Aliases func(uid string) []string
	// MinLatency and MaxLatency are how long each call takes at least, in equal parts before and
	// after its effect.
	MinLatency, MaxLatency time.Duration
	// Save has a call outlive the cloud, with what it has changed. It is called under the lock.
	Save func(*Call) error
	// Newest is the number of the newest resource: a list that is behind knows of none beyond. It
	// is called under the lock.
	Newest func() int64
	// Log is told what could not be saved.
	Log *slog.Logger
}

// Front is what every call to a test cloud goes through: it is noted, faults strike it before and
// after its effect, and who waits for news hears of it. It is the lock of the cloud behind it, too:
// effects take it, and nobody waits under it.
type Front struct {
	sync.Mutex
	// Ledger has the calls. The lock guards it.
	Ledger Ledger

	options Options
	faults  faults
	// dice draw the latency of every call.
	dice *rand.Rand
	// changed is closed and replaced at each change that a long poll could wait for.
	changed chan struct{}
	closed  chan struct{}
}

// NewFront returns a front without calls or faults.
func NewFront(o Options) *Front {
	return &Front{
		options: o, faults: faults{effects: o.Effects, operations: o.Operations, aliases: o.Aliases},
		dice: rand.New(rand.NewPCG(1, 2)), changed: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Turn is a call under way.
type Turn struct {
	*Call
	// Struck are the faults that strike it.
	Struck  []*Fault
	latency time.Duration
}

// Horizon is the number of the last resource that a list may hold.
func (t *Turn) Horizon() int64 {
	last := int64(math.MaxInt64)
	for _, f := range t.Struck {
		if f.forList() {
			last = min(last, f.since)
		}
	}
	return last
}

// Begin notes a new call and chooses its faults. The caller holds the lock.
func (f *Front) Begin(a Arrival) *Turn {
	t := &Turn{
		Call: &Call{
			Operation: a.Operation, Clusters: a.Clusters, Machines: a.Machines, Resource: a.Resource, Progress: Received, Received: Now(),
		},
		Struck: f.faults.choose(a), latency: draw(f.dice, f.options.MinLatency, f.options.MaxLatency),
	}
	for _, one := range t.Struck {
		t.Faults = append(t.Faults, one.GetId())
	}
	f.Ledger.begin(t.Call)
	f.Wake()
	f.Report(f.options.Save(t.Call))
	return t
}

// Errors are the cloud's own, as faults ask for them.
type Errors func(*backendv1alpha1.FaultError) error

// Run lets the call take effect once, with what strikes it before and after. Only the end of the
// cloud keeps a call from its effect; the end of ctx does not. ErrBroken, and the status of a ctx
// that has ended, mean that the caller gets no answer.
func (f *Front) Run(ctx context.Context, t *Turn, injected Errors, effect func() error) error {
	stop := context.AfterFunc(ctx, func() { f.abandon(t) })
	defer stop()
	if err := f.strike(ctx, t, BeforeEffect, injected); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	return f.strike(ctx, t, AfterEffect, injected)
}

// TakeEffect calls effect under the lock, unless the cloud is closed, and notes that it has been.
func (f *Front) TakeEffect(t *Turn, effect func() error) error {
	f.Lock()
	defer f.Unlock()
	if f.IsClosed() {
		return ErrBroken
	}
	if err := effect(); err != nil {
		return err
	}
	t.DoneAt = Now()
	if t.Progress == Received {
		t.Progress = Done
	}
	return f.progress(t)
}

// progress publishes how far the call is.
func (f *Front) progress(t *Turn) error {
	f.Ledger.update(t.Call)
	f.Wake()
	return f.options.Save(t.Call)
}

// abandon notes that the caller has gone.
func (f *Front) abandon(t *Turn) {
	f.Lock()
	defer f.Unlock()
	if t.Progress == Answered || t.Progress == Abandoned {
		return
	}
	t.Progress = Abandoned
	f.Report(f.progress(t))
}

// Answer is what a call's caller gets: Err where that is ErrBroken, or else code and message.
type Answer struct {
	Code    codes.Code
	Message string
	Err     error
}

// End notes the end of the call.
func (f *Front) End(ctx context.Context, t *Turn, a Answer) {
	f.Lock()
	defer f.Unlock()
	t.Answered = Now()
	t.Code, t.Message = int32(a.Code), a.Message
	t.Progress = Answered
	if ctx.Err() != nil || errors.Is(a.Err, ErrBroken) {
		t.Progress = Abandoned
	}
	f.Report(f.progress(t))
}

// Report logs what went wrong where nobody can be told. That the cloud has ended is no news.
func (f *Front) Report(err error) {
	if err != nil && !errors.Is(err, ErrClosed) {
		f.options.Log.Error("cloud could not write its journal", "error", err)
	}
}

// strike lets everything happen that is due at this point of the call.
func (f *Front) strike(ctx context.Context, t *Turn, point backendv1alpha1.FaultPoint, injected Errors) error {
	if err := f.pass(t.latency / 2); err != nil {
		return err
	}
	for _, one := range t.Struck {
		if one.ForVM() || one.forList() || one.at() != point {
			continue
		}
		if err := f.suffer(ctx, one, injected); err != nil {
			return err
		}
	}
	return nil
}

// suffer lets one fault strike.
func (f *Front) suffer(ctx context.Context, one *Fault, injected Errors) error {
	switch one.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY:
		f.Lock()
		latency := one.latency()
		f.Unlock()
		return f.pass(latency)
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR:
		return injected(one.GetError())
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD:
		return f.hold(one)
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG:
		return f.hang(ctx, one)
	default:
		return ErrBroken
	}
}

// pass lets time pass.
func (f *Front) pass(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.closed:
		return ErrBroken
	}
}

// hold waits until the fault is removed.
func (f *Front) hold(one *Fault) error {
	select {
	case <-one.removed:
		return nil
	case <-f.closed:
		return ErrBroken
	}
}

// hang waits until the caller gives up or the fault is removed; nobody gets an answer.
func (f *Front) hang(ctx context.Context, one *Fault) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-one.removed:
	case <-f.closed:
	}
	return ErrBroken
}

// Wake lets long polls look again. The caller holds the lock.
func (f *Front) Wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Poll calls look, under the lock, until it returns true, the wait is over, or the caller or the
// cloud goes.
func (f *Front) Poll(ctx context.Context, wait time.Duration, look func() bool) {
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	for {
		f.Lock()
		found, changed := look(), f.changed
		f.Unlock()
		if found || wait <= 0 {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-f.closed:
			return
		}
	}
}

// Close ends every wait, without the effect of what waited for it, and says whether this was the
// first Close. The caller holds the lock.
func (f *Front) Close() bool {
	if f.IsClosed() {
		return false
	}
	close(f.closed)
	return true
}

// Closed is closed by Close.
func (f *Front) Closed() <-chan struct{} { return f.closed }

// IsClosed says whether the cloud has ended.
func (f *Front) IsClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}
