package session

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	// defaultRequestTimeout is how long a request may take. Creating a server takes Nova a second
	// or two; a loaded Neutron ten.
	defaultRequestTimeout = 30 * time.Second
	// defaultMaxConcurrent is how many reads of a project are under way at most, and half of how
	// many calls that create or delete machines of it are: with volumes, and without.
	defaultMaxConcurrent = 16
	// changePatience is the part of a caller's time for which a creation or deletion waits. The
	// rest is for the requests.
	changePatience = 3
	// idleAfter is how long a session is kept that nobody opens.
	idleAfter = time.Hour
)

// Options are how a pool works. The zero value is good.
type Options struct {
	// RequestTimeout bounds each request with its whole answer; 0 means 30 s. gophercloud itself
	// has no timeout.
	RequestTimeout time.Duration
	// MaxConcurrent is how many reads of one project are under way at most; 0 means 16. Twice as
	// many calls may create or delete machines with volumes, and as many those without. Further
	// ones wait for a place. Such calls are fewer where services answer slowly.
	MaxConcurrent int
	// UserAgent is put before gophercloud's own; empty adds nothing.
	UserAgent string
	// Log gets a debug line for each request: no headers, no bodies, no queries. nil logs nothing.
	Log *slog.Logger
	// Observe is told of each request that was sent; nil tells nobody. It must return quickly and
	// may be called concurrently.
	Observe func(Call)
	// ObserveWait is told how long each creation or deletion of a machine has waited for others of
	// its project, also one that was then refused; nil tells nobody. The same rules hold for it.
	ObserveWait func(time.Duration)
	// Clock tells the time; nil means time.Now.
	Clock func() time.Time
	// Transport sends all requests instead of connections of the pool's own, which then know of no
	// CA bundle either. For tests.
	Transport http.RoundTripper
}

// Call is a request that was sent to a cloud.
type Call struct {
	// Service is compute, network, image, volume or identity.
	Service string
	// Method is the HTTP method.
	Method string
	// Code is the HTTP status; 0 when there was no whole answer.
	Code int
	// Waited is how long it waited for a place among the project's reads, Duration how long it took
	// from then on.
	Waited, Duration time.Duration
	// Repeated says that it was sent again with another token.
	Repeated bool
}

// Pool keeps the sessions of a process. It is safe for concurrent use, starts nothing of its own
// and needs no closing.
type Pool struct {
	options Options

	mu       sync.Mutex
	logins   map[string]*login
	projects map[string]*project
}

// NewPool returns a pool without sessions.
func NewPool(o Options) *Pool {
	if o.RequestTimeout == 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = defaultMaxConcurrent
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Call) {}
	}
	if o.ObserveWait == nil {
		o.ObserveWait = func(time.Duration) {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Pool{options: o, logins: map[string]*login{}, projects: map[string]*project{}}
}

// Open returns the session of an account that speaks this version of Nova's API; empty means
// spec.MinComputeAPIVersion. It logs in where nobody has yet, once for all who ask at the same
// time. One who stops waiting gets his context's error; the login goes on for the others.
//
// The same account and version give the same *Session. It is kept while its project and its
// endpoints stay the same and it is opened at least once an hour.
//
// Errors are the contract's: CREDENTIALS_INVALID in Keystone's words, without asking Keystone again
// within a minute; SPEC_INVALID for an account that cannot be one; DEPENDENCY_NOT_FOUND for a
// project, region or service that is not there; OUTCOME_UNKNOWN for a cloud that does not answer.
func (p *Pool) Open(ctx context.Context, a spec.Account, computeAPIVersion string) (*Session, error) {
	l, err := p.login(a)
	if err != nil {
		return nil, err
	}
	token, err := l.issuedToken(ctx)
	if err != nil {
		return nil, err
	}
	where, err := locate(token, a)
	if err != nil {
		return nil, err
	}
	if computeAPIVersion == "" {
		computeAPIVersion = spec.MinComputeAPIVersion
	}
	return p.session(l, where, computeAPIVersion)
}

// StartChange waits until one more machine of a project may be created or deleted, for at most a
// third of the time that the caller has. It returns the context of the requests for it, and what
// has to be called at the end. Its error is RATE_LIMITED, or the context's. Machines with volumes
// have a line of their own: a Cinder that hangs holds up no others.
func StartChange(ctx context.Context, in *Session, withVolumes bool) (requests context.Context, end func(), err error) {
	line := in.shared.changes
	if withVolumes {
		line = in.shared.volumeChanges
	}
	patient := ctx
	if deadline, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeout(ctx, time.Until(deadline)/changePatience)
		defer cancel()
	}
	requests, mine, admitted := line.start(ctx, patient)
	switch {
	case admitted:
		return requests, mine.end, nil
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	}
	return nil, nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED,
		"The cloud answers slowly, and other machines wait for it already.", sdk.WithRetryAfter(line.slow))
}

// login returns the login of an account, a new one if need be. It asks nobody.
func (p *Pool) login(a spec.Account) (*login, error) {
	key := a.Key()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock()
	p.dropIdle(now)
	if l, known := p.logins[key]; known {
		l.used = now
		return l, nil
	}
	l, err := newLogin(p.options, a)
	if err != nil {
		return nil, err
	}
	l.used = now
	p.logins[key] = l
	return l, nil
}

// dropIdle forgets what nobody has opened for long, such as the sessions of credentials that have
// been replaced.
func (p *Pool) dropIdle(now time.Time) {
	for key, l := range p.logins {
		if now.Sub(l.used) >= idleAfter {
			delete(p.logins, key)
			l.closeIdle()
		}
	}
	for key, one := range p.projects {
		if now.Sub(one.used) >= idleAfter {
			delete(p.projects, key)
		}
	}
}

// session returns the login's session for these places and this version, a new one where they have
// changed.
func (p *Pool) session(l *login, where places, version string) (*Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shared := p.project(where.key)
	if s := l.sessions[version]; s != nil && s.where == where {
		return s, nil
	}
	s, err := newSession(l, where, shared, version)
	if err != nil {
		return nil, err
	}
	l.sessions[version] = s
	return s, nil
}

// project returns what all sessions of a project share.
func (p *Pool) project(key string) *project {
	one, known := p.projects[key]
	if !known {
		one = newProject(p.options)
		p.projects[key] = one
	}
	one.used = p.options.Clock()
	return one
}
