package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	// refusedFor is how long a refused login is answered without asking again. Keystones lock
	// accounts out that try more often.
	refusedFor = time.Minute
	// failedFor is the same for a login that failed in another way.
	failedFor = 2 * time.Second
)

// projectToken is what a login brought: a token, its project and its catalog. It never changes.
type projectToken struct {
	id      string
	project tokens.Project
	catalog []tokens.CatalogEntry
	// expires is until when the token is good; zero where Keystone has not said. halfLife is when
	// half of the time until then is over.
	expires, halfLife time.Time
}

// minLifetime is how long a token has to be good for half of that to mean anything: with less, the
// clocks differ.
const minLifetime = time.Minute

// setHalfLife sets when half of the token's life is over.
func (t *projectToken) setHalfLife(now time.Time) {
	if left := t.expires.Sub(now); left >= minLifetime {
		t.halfLife = now.Add(left / 2)
	}
}

// login is one credential. It is safe for concurrent use.
type login struct {
	options  Options
	account  spec.Account
	identity *gophercloud.ServiceClient
	next     http.RoundTripper
	pool     *http.Transport
	// used and sessions, by version of Nova's API, are the pool's, under its lock.
	used     time.Time
	sessions map[string]*Session

	mu        sync.Mutex
	current   *projectToken
	loggingIn *sharedCall[*projectToken]
	// failure is what the last login came to, and what all get to hear until then.
	failure error
	until   time.Time
	// distrusted is until when a token that is refused is not renewed: a new one was refused as
	// well.
	distrusted time.Time
}

// newLogin prepares a login. It fails with SPEC_INVALID for a URL or a CA bundle that is none.
func newLogin(o Options, a spec.Account) (*login, error) {
	base, err := identityBase(a.IdentityEndpoint)
	if err != nil {
		return nil, err
	}
	// As many connections are kept as may have calls: those of the reads, and twice as many for
	// each of the two lines of creates and deletes.
	connections, err := newTransport(a, 5*o.MaxConcurrent)
	if err != nil {
		return nil, err
	}
	l := &login{options: o, account: a, next: connections, pool: connections, sessions: map[string]*Session{}}
	if o.Transport != nil {
		l.next = o.Transport
	}
	client := l.client(&wire{options: o, service: serviceIdentity, next: l.next, bounds: &bounds{}})
	l.identity = &gophercloud.ServiceClient{ProviderClient: client, Endpoint: base + "v3/"}
	return l, nil
}

// identityBase returns the URL of Keystone without its version, with a slash at the end.
func identityBase(endpoint string) (string, error) {
	const flaw = "must be the URL of Keystone, such as https://keystone.example.com:5000/v3"
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID,
			"identityEndpoint "+flaw, sdk.WithField("identityEndpoint", flaw))
	}
	path := strings.TrimRight(u.Path, "/")
	// v2.0 is in the specs of years ago. No Keystone of today has it, all have v3 beside it.
	for _, version := range []string{"/v3", "/v2.0"} {
		path = strings.TrimSuffix(path, version)
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path + "/"}).String(), nil
}

// client returns gophercloud's for one service. It retries nothing, knows no token and renews none:
// that is the transport's business.
func (l *login) client(transport http.RoundTripper) *gophercloud.ProviderClient {
	client := &gophercloud.ProviderClient{HTTPClient: http.Client{Transport: transport, CheckRedirect: stayAtHome}}
	if l.options.UserAgent != "" {
		client.UserAgent.Prepend(l.options.UserAgent)
	}
	return client
}

// closeIdle gives back the connections that are not in use.
func (l *login) closeIdle() { l.pool.CloseIdleConnections() }

// issuedToken returns what the login brought; it logs in where nobody has. After half of a token's
// life it has a new one asked for, for which nobody waits: a token that ends between two services
// would break off a create.
func (l *login) issuedToken(ctx context.Context) (*projectToken, error) {
	token, err := l.renew(ctx, nil)
	if err == nil && l.isOld(token) {
		l.mu.Lock()
		if l.current == token && l.loggingIn == nil && !l.options.Clock().Before(l.until) {
			l.logIn(ctx, true)
		}
		l.mu.Unlock()
	}
	return token, err
}

// isOld says whether it is time for another token. One that the account holds cannot be renewed.
func (l *login) isOld(token *projectToken) bool {
	return !token.halfLife.IsZero() && !l.options.Clock().Before(token.halfLife) && l.account.Method() != spec.MethodToken
}

// renew returns another token than the stale one, which a service has refused, unless there is no
// use in asking for one: then the same.
func (l *login) renew(ctx context.Context, stale *projectToken) (*projectToken, error) {
	l.mu.Lock()
	now := l.options.Clock()
	switch {
	case l.current != nil && l.current != stale:
		defer l.mu.Unlock()
		return l.current, nil
	case now.Before(l.until):
		defer l.mu.Unlock()
		return nil, l.failure
	case stale != nil && now.Before(l.distrusted):
		defer l.mu.Unlock()
		return stale, nil
	}
	f := l.loggingIn
	if f == nil {
		f = l.logIn(ctx, stale != nil)
	}
	l.mu.Unlock()
	return f.wait(ctx)
}

// logIn begins to log in. The lock is held.
func (l *login) logIn(ctx context.Context, renewal bool) *sharedCall[*projectToken] {
	f := newSharedCall[*projectToken]()
	l.loggingIn = f
	f.start(ctx, func(ctx context.Context) (token *projectToken, err error) {
		err = errPanicked
		defer func() { l.finished(token, err) }()
		return l.ask(ctx, renewal)
	})
	return f
}

// finished notes what a login came to. A refusal ends the token from before as well: whoever comes
// is told of it.
func (l *login) finished(token *projectToken, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loggingIn = nil
	if errors.Is(err, errPanicked) {
		return
	}
	if err == nil {
		l.current = token
		return
	}
	wait := failedFor
	if _, is := errors.AsType[*refusal](err); is {
		wait, l.current = refusedFor, nil
	}
	l.failure, l.until = err, l.options.Clock().Add(wait)
}

// distrust stops renewals for a while after a service has refused a token that was new: another one
// will not help.
func (l *login) distrust(token *projectToken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == token {
		l.distrusted = l.options.Clock().Add(refusedFor)
	}
}

// refusal is an error that another try within a minute will not end. The contract's error is in it.
type refusal struct{ error }

// Unwrap returns the contract's error.
func (r *refusal) Unwrap() error { return r.error }

// ask logs in. Its errors are the contract's, and free of the account's secrets, whatever Keystone
// may have said.
func (l *login) ask(ctx context.Context, renewal bool) (*projectToken, error) {
	var token *projectToken
	var err error
	if l.account.Method() == spec.MethodToken {
		token, err = l.askWithToken(ctx, renewal)
	} else {
		token, err = read(tokens.Create(ctx, l.identity, authOptions(l.account)))
	}
	if err == nil {
		token.setHalfLife(l.options.Clock())
	}
	if err != nil {
		return nil, refused(err, l.account)
	}
	if token.project.ID == "" {
		return nil, &refusal{sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
			"The credentials open no project by themselves: name the project.",
			sdk.WithField("projectName", "Name the project, by projectName or by projectID."))}
	}
	if l.account.Method() == spec.MethodApplicationCredential && !opens(&token.project, l.account) {
		return nil, &refusal{otherProject(token.project, l.account)}
	}
	return token, nil
}

// askWithToken finds out what a token is for. Only where it is not for the account's project is
// another one asked for: many Keystones do not give one for a token.
func (l *login) askWithToken(ctx context.Context, renewal bool) (*projectToken, error) {
	if renewal {
		return nil, &refusal{sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID,
			"The token is no longer valid, and a token cannot be renewed: give a new one, or an application credential instead.",
			sdk.WithField("tokenId", "The token is no longer valid."))}
	}
	// A client of its own, since this token is for no other call.
	client := *l.identity
	provider := *l.identity.ProviderClient
	provider.TokenID = l.account.Token
	client.ProviderClient = &provider
	result := tokens.Get(ctx, &client, l.account.Token)
	project, err := result.ExtractProject()
	if err != nil {
		return nil, err
	}
	if opens(project, l.account) {
		return read(result)
	}
	return read(tokens.Create(ctx, l.identity, authOptions(l.account)))
}

// opens says whether a token's project, nil for none, is the one that the account names; any, where
// it names none.
func opens(project *tokens.Project, a spec.Account) bool {
	if project == nil || a.TrustID != "" {
		return false
	}
	if a.ProjectID != "" {
		return a.ProjectID == project.ID
	}
	// Of a token, the domain "default" may stand for one that nobody has named.
	isAny := a.ProjectDomainID == "" || a.ProjectDomainID == "default" && a.Method() == spec.MethodToken
	isDomain := (isAny || a.ProjectDomainID == project.Domain.ID) &&
		(a.ProjectDomainName == "" || a.ProjectDomainName == project.Domain.Name)
	return a.ProjectName == "" || a.ProjectName == project.Name && isDomain
}

// otherProject returns the error for an application credential whose project is not the one that
// the account names.
func otherProject(opened tokens.Project, a spec.Account) error {
	field, wanted, got := "projectID", a.ProjectID, opened.ID
	if wanted == "" {
		field, wanted, got = "projectName", a.ProjectName, opened.Name
	}
	if wanted == got {
		domain := opened.Domain.Name
		field = "projectDomainName"
		if a.ProjectDomainID != "" {
			field, domain = "projectDomainID", opened.Domain.ID
		}
		got += " of the domain " + domain
		wanted += " of the domain " + cmp.Or(a.ProjectDomainID, a.ProjectDomainName)
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID,
		fmt.Sprintf("The application credential opens the project %s, and the one that is named is %s.", got, wanted),
		sdk.WithField(field, fmt.Sprintf("Leave it out, or give an application credential of the project %s.", wanted)))
}

// issued is Keystone's answer to a login.
type issued interface {
	ExtractToken() (*tokens.Token, error)
	ExtractTokenID() (string, error)
	ExtractProject() (*tokens.Project, error)
	ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
}

func read(answer issued) (*projectToken, error) {
	id, err := answer.ExtractTokenID()
	if err != nil {
		return nil, err
	}
	project, err := answer.ExtractProject()
	if err != nil {
		return nil, err
	}
	catalog, err := answer.ExtractServiceCatalog()
	if err != nil {
		return nil, err
	}
	token := &projectToken{id: id, catalog: catalog.Entries}
	// Keystone's v3 always says how long; who does not is not worth an error.
	if told, err := answer.ExtractToken(); err == nil {
		token.expires = told.ExpiresAt
	}
	if project != nil {
		token.project = *project
	}
	return token, nil
}
