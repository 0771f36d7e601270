package openstacksim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// The points of a call at which faults strike.
const (
	beforeEffect = backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT
	afterEffect  = backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
)

// maxBody is the most bytes of a request that the cloud reads.
const maxBody = 4 << 20

// errBroken ends a call without a word: its caller sees a connection that broke.
var errBroken = errors.New("the connection was closed before the answer arrived")

// turn is a call under way.
type turn struct {
	*call
	route   *route
	request *http.Request
	query   url.Values
	body    []byte
	latency time.Duration
	faults  []*fault
	// scope is whose token the call came with.
	scope *token
	// version is what the call speaks of Nova's API.
	version microversion
	// spoken is what the answer says of the version; empty: nothing.
	spoken string
}

// token is what the caller shows to prove who he is.
func (t *turn) token() string { return t.request.Header.Get("X-Auth-Token") }

// project is that of the caller, who has been admitted; admin says whether he sees those of others.
func (t *turn) project() string {
	if !t.scope.Scoped {
		return "" // a token for no project sees what no project has: nothing
	}
	return t.scope.user.ProjectID
}

func (t *turn) admin() bool { return t.scope.Scoped && t.scope.user.Admin }

// sees says whether the caller may see what belongs to a project.
func (t *turn) sees(project string) bool { return project == t.project() || t.admin() }

// path is a part of the request's path, by its name in the route.
func (t *turn) path(name string) string { return t.request.PathValue(name) }

// base is where the caller reached the cloud.
func (t *turn) base() string {
	if t.request.TLS != nil {
		return "https://" + t.request.Host
	}
	return "http://" + t.request.Host
}

// fingerprint is the same for a call that is repeated.
func (t *turn) fingerprint() string {
	sum := sha256.Sum256(t.body)
	return t.request.Method + " " + t.request.RequestURI + " " + hex.EncodeToString(sum[:8])
}

// changed notes that the call took effect on a resource.
func (t *turn) changed(id string) {
	t.Resource, t.Done = id, true
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

// handle serves one kind of call: it notes it, lets faults strike, and lets the call take effect once. Only the end of the cloud keeps a call
// from its effect; that the caller goes does not.
func (c *Cloud) handle(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		t := c.receive(rt, r, body)
		stop := context.AfterFunc(r.Context(), func() { c.abandon(t) })
		answer, err := c.run(r.Context(), t)
		stop()
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			answer = rt.service.refused(refused, t.base())
		case err != nil:
			c.answer(r.Context(), t, reply{}, err)
			panic(http.ErrAbortHandler)
		}
		if t.spoken != "" {
			answer.speak(rt.service, t.spoken)
		}
		c.answer(r.Context(), t, answer, err)
		answer.write(w, r)
	}
}

// receive notes a new call and chooses its faults.
func (c *Cloud) receive(rt *route, r *http.Request, body []byte) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &turn{
		call:  &call{Operation: rt.named(body), Progress: received, Received: now()},
		route: rt, request: r, query: r.URL.Query(), body: body,
		latency: draw(c.faults.dice, c.options.MinCallLatency, c.options.MaxCallLatency),
	}
	t.Subjects, t.Resource = c.subjectsOf(t)
	t.faults = c.faults.choose(t)
	for _, f := range t.faults {
		t.Faults = append(t.Faults, f.GetId())
	}
	c.calls.begin(t.call)
	c.wake()
	c.saveCall(t.call)
	c.report(c.flush())
	return t
}

// subjectsOf returns whose call it is and which resource its path names.
func (c *Cloud) subjectsOf(t *turn) (found subjects, resource string) {
	found = c.subjectsOfQuery(t.query)
	if len(t.body) > 0 && t.route.service != keystone {
		body := c.subjectsOfBody(t.body)
		found.Clusters, found.Machines = append(found.Clusters, body.Clusters...), append(found.Machines, body.Machines...)
	}
	if id := t.path("id"); id != "" {
		found.add(c.owners[id])
		return found, id
	}
	return found, ""
}

func (c *Cloud) run(ctx context.Context, t *turn) (reply, error) {
	if err := c.strike(ctx, t, beforeEffect); err != nil {
		return reply{}, err
	}
	answer, err := c.takeEffect(t)
	if err != nil {
		return reply{}, err
	}
	return answer, c.strike(ctx, t, afterEffect)
}

func (c *Cloud) takeEffect(t *turn) (reply, error) {
	if c.upstream != nil {
		return c.passOn(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return reply{}, errBroken
	}
	if err := c.admit(t); err != nil {
		return reply{}, err
	}
	answer, err := t.route.do(c, t)
	if err != nil {
		return reply{}, err
	}
	t.DoneAt = now()
	if t.Progress == received {
		t.Progress = done
	}
	return answer, c.progress(t)
}

// progress publishes how far the call is.
func (c *Cloud) progress(t *turn) error {
	c.calls.update(t.call)
	c.wake()
	c.saveCall(t.call)
	return c.flush()
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
func (c *Cloud) answer(ctx context.Context, t *turn, r reply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Answered = now()
	t.Code = int32(grpcCode(r.status))
	t.Message = r.words
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
		if f.forServer() || f.forList() || f.at() != point {
			continue
		}
		if err := c.suffer(ctx, t, f); err != nil {
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
func (c *Cloud) suffer(ctx context.Context, t *turn, f *fault) error {
	switch f.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY:
		c.mu.Lock()
		latency := f.latency()
		c.mu.Unlock()
		return c.pass(latency)
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR:
		return injected(t, f.GetError())
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
	case <-f.removed:
	case <-c.closed:
	}
	return errBroken
}
