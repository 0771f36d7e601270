package openstacksim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// maxBody is the most bytes of a request that the cloud reads.
const maxBody = 4 << 20

// turn is a call under way.
type turn struct {
	*testcloud.Turn
	route   *route
	request *http.Request
	query   url.Values
	body    []byte
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

// handle serves one kind of call: it notes it, lets faults strike, and lets the call take effect
// once. Only the end of the cloud keeps a call from its effect; that the caller goes does not.
func (c *Cloud) handle(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		t := c.receive(rt, r, body)
		var answer reply
		err = c.front.Run(r.Context(), t.Turn, t.injected, func() error {
			answer, err = c.takeEffect(t)
			return err
		})
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			answer = rt.service.refused(refused, t.base())
		case err != nil:
			c.front.End(r.Context(), t.Turn, testcloud.Answer{Code: grpcCode(0), Err: err})
			panic(http.ErrAbortHandler)
		}
		if t.spoken != "" {
			answer.speak(rt.service, t.spoken)
		}
		c.front.End(r.Context(), t.Turn, testcloud.Answer{Code: grpcCode(answer.status), Message: answer.words})
		answer.write(w, r)
	}
}

// receive notes a new call and chooses its faults.
func (c *Cloud) receive(rt *route, r *http.Request, body []byte) *turn {
	c.front.Lock()
	defer c.front.Unlock()
	t := &turn{route: rt, request: r, query: r.URL.Query(), body: body}
	whose, resource := c.subjectsOf(t)
	t.Turn = c.front.Begin(testcloud.Arrival{
		Operation: rt.named(body), Clusters: whose.clusters, Machines: whose.machines, Resource: resource,
		CreatesVM: rt.operation == opCreateServer || isMove(rt.named(body)), Creates: rt.creates, Request: t.fingerprint(), Token: t.token(),
	})
	return t
}

// subjectsOf returns whose call it is and which resource its path names.
func (c *Cloud) subjectsOf(t *turn) (found subjects, resource string) {
	found = c.subjectsOfQuery(t.query)
	if len(t.body) > 0 && t.route.service != keystone {
		body := c.subjectsOfBody(t.body)
		found.clusters, found.machines = append(found.clusters, body.clusters...), append(found.machines, body.machines...)
	}
	if id := t.path("id"); id != "" {
		found.add(c.owners[id])
		return found, id
	}
	return found, ""
}

func (c *Cloud) takeEffect(t *turn) (answer reply, err error) {
	if c.upstream != nil {
		return c.passOn(t)
	}
	err = c.front.TakeEffect(t.Turn, func() error {
		if err := c.admit(t); err != nil {
			return err
		}
		answer, err = t.route.do(c, t)
		return err
	})
	return answer, err
}
