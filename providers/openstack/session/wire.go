package session

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	// connectTimeout is how long the way to a cloud may take, before anything is asked.
	connectTimeout = 10 * time.Second
	// idleConnTimeout is how long a connection is kept that is not used. Few servers keep theirs
	// for less, and a request on a connection that is just being closed is one whose outcome nobody
	// knows.
	idleConnTimeout = 30 * time.Second
	// maxAnswer is the longest answer that is read, in bytes: a thousand servers with all their
	// metadata are a tenth of it.
	maxAnswer = 64 << 20
	// maxRedirects is how many redirects of one request are followed.
	maxRedirects = 3
)

// newTransport returns connections to an account's cloud. They trust the system's roots and the
// account's CA bundle, and show its client certificate. It keeps that many of them to a host.
//
// HTTP/1.1 only: there net/http sends a POST again only when not a byte of it was written. With
// HTTP/2 it also believes a server that says it has done nothing.
func newTransport(a spec.Account, most int) (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if a.CACert != "" && !roots.AppendCertsFromPEM([]byte(a.CACert)) {
		const flaw = "must be a CA bundle: one or more certificates in PEM"
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, "caCert "+flaw, sdk.WithField("caCert", flaw))
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.Verify == spec.VerifyNone} //nolint:gosec // only where the operator says so, twice
	if a.ClientCert != "" {
		pair, err := tls.X509KeyPair([]byte(a.ClientCert), []byte(a.ClientKey))
		if err != nil {
			const flaw = "must be a certificate in PEM, and clientKey its private key"
			return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, "clientCert "+flaw, sdk.WithField("clientCert", flaw))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connectTimeout,
		TLSClientConfig:     config,
		MaxIdleConnsPerHost: most,
		IdleConnTimeout:     idleConnTimeout,
		Protocols:           protocols,
	}, nil
}

// stayAtHome follows redirects of reads within a server. Elsewhere a request would take its token,
// or its password, along.
func stayAtHome(next *http.Request, sent []*http.Request) error {
	last := sent[len(sent)-1]
	if !isRead(last) || len(sent) > maxRedirects || next.URL.Scheme != last.URL.Scheme || next.URL.Host != last.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// wire carries requests to one service: it keeps them within the project's bounds, reads answers to
// their end, and counts.
type wire struct {
	options Options
	service string
	next    http.RoundTripper
	*bounds
}

// RoundTrip implements http.RoundTripper. Its errors are the context's, a verdict or a lost.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	came := w.options.Clock()
	release, err := w.admit(request)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // as a RoundTripper must; there is nothing to lose
		}
		return nil, err
	}
	defer release()
	began := w.options.Clock()
	answer, err := w.exchange(request)
	ended := w.options.Clock()
	w.report(request, answer, err, Call{Waited: began.Sub(came), Duration: ended.Sub(began)})
	// A login is for all who wait for it.
	if mine := changeOf(request.Context()); mine != nil && !isRead(request) && w.service != serviceIdentity {
		mine.answered(began, ended, answer)
	}
	if err != nil {
		return nil, err
	}
	w.pause.heed(answer, w.options.Clock())
	return answer, nil
}

// errSlow is the cause of a request's own timeout. A caller's deadline, and a dialer's, are other
// errors.
var errSlow = errors.New("no answer in time")

// exchange sends a request and reads the whole answer, within the timeout of one request.
func (w *wire) exchange(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(request.Context(), w.options.RequestTimeout, errSlow)
	defer cancel()
	answer, err := w.next.RoundTrip(request.WithContext(ctx))
	if err == nil {
		err = readWhole(answer)
	}
	switch {
	case err == nil:
		return answer, nil
	case request.Context().Err() != nil:
		return nil, request.Context().Err()
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, &lost{host: request.URL.Host, words: "no answer within " + w.options.RequestTimeout.String()}
	}
	return nil, &lost{host: request.URL.Host, words: wordsOf(err)}
}

// readWhole puts the bytes of an answer in the place of the connection.
func readWhole(answer *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	_ = answer.Body.Close() // all that was of interest has been read
	if err == nil && len(raw) > maxAnswer {
		err = errors.New("the answer is too long")
	}
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	return err
}

// report tells of a request, without its query, which may name what is nobody's business.
func (w *wire) report(request *http.Request, answer *http.Response, err error, call Call) {
	call.Service, call.Method = w.service, request.Method
	call.Repeated, _ = request.Context().Value(repeated{}).(bool)
	id, failure := "", ""
	if answer != nil {
		call.Code, id = answer.StatusCode, answer.Header.Get("X-Openstack-Request-Id")
	}
	if err != nil {
		call.Code, failure = 0, err.Error()
	}
	w.options.Observe(call)
	w.options.Log.LogAttrs(request.Context(), slog.LevelDebug, "asked the cloud",
		slog.String("service", w.service), slog.String("method", request.Method), slog.String("path", request.URL.Path),
		slog.Int("status", call.Code), slog.Duration("took", call.Duration), slog.String("request_id", id), slog.String("error", failure))
}

// repeated is the key of what a request's context says: that it is sent again.
type repeated struct{}

// authTransport sends requests with the token of a login, which it has renewed when a service does
// not take it any more.
type authTransport struct {
	login *login
	// project is whose the session is.
	project string
	// home is the service's URL, as the catalog has it.
	home *url.URL
	next *wire
}

// RoundTrip implements http.RoundTripper.
func (b *authTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := b.token(request.Context(), b.login.issuedToken)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // as a RoundTripper must; there is nothing to lose
		}
		return nil, err
	}
	answer, err := b.send(request, token)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	again, can := rewound(request)
	if !can {
		return answer, nil
	}
	renewed, err := b.token(request.Context(), func(ctx context.Context) (*projectToken, error) { return b.login.renew(ctx, token) })
	if err != nil {
		return nil, err
	}
	if renewed != token {
		answer, err = b.send(again.WithContext(context.WithValue(again.Context(), repeated{}, true)), renewed)
		if err != nil || answer.StatusCode != http.StatusUnauthorized {
			return answer, err
		}
		b.login.distrust(renewed)
	}
	if b.login.account.Method() != spec.MethodApplicationCredential {
		return answer, nil
	}
	// Keystone's middleware says no more of a path that no access rule allows.
	return nil, &verdict{sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID, fmt.Sprintf(
		"The %s service refuses a new token, too (401). If the application credential has access rules, one has to allow %s %s.",
		b.next.service, request.Method, request.URL.Path))}
}

// token returns a token of the session's own project: another one's token would show an empty
// project, and everything gone.
func (b *authTransport) token(ctx context.Context, ask func(context.Context) (*projectToken, error)) (*projectToken, error) {
	token, err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &verdict{err}
	}
	if token.project.ID != b.project {
		return nil, &verdict{sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED,
			"The credentials now open the project "+token.project.ID+" instead of "+b.project+".")}
	}
	return token, nil
}

// send sends a copy of a request, as a RoundTripper must, with a token. It goes to the service's
// own address always: the links to the next page of a list name the host by which a service behind
// a proxy knows itself.
func (b *authTransport) send(request *http.Request, token *projectToken) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-Auth-Token", token.id)
	request.URL.Scheme, request.URL.Host, request.Host = b.home.Scheme, b.home.Host, b.home.Host
	return b.next.RoundTrip(request)
}

// rewound returns a request that can be sent once more; false for one whose body is gone.
func rewound(request *http.Request) (*http.Request, bool) {
	again := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return again, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	again.Body = body
	return again, err == nil
}
