package openstacksim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Upstream are real services that a Cloud stands before: it passes the calls of their users on and
// answers what they answer. It keeps the same ledger of them and has the same faults strike, but
// for lists that are behind and servers that boot for ever.
type Upstream struct {
	// IdentityEndpoint is Keystone's, and Region where the services are.
	IdentityEndpoint string `json:"identityEndpoint"`
	Region           string `json:"region"`
	// Administrator may see and change all; Member is one whose project the hooks tell of. Both are
	// in a project of their own name, in the domain Default, with the same Password.
	Administrator string `json:"administrator"`
	Member        string `json:"member"`
	Password      string `json:"password"`
}

// ReadUpstream returns the real services that a file names. What else the file holds is somebody
// else's.
func ReadUpstream(path string) (*Upstream, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	named := &Upstream{}
	if err := json.Unmarshal(raw, named); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return named, nil
}

const (
	// upstreamLimit bounds a call that is passed on; it goes on when its caller has gone.
	upstreamLimit = 5 * time.Minute
	// maxWords is how much of an error the ledger keeps.
	maxWords = 300
)

// upstream is how the real services are reached.
type upstream struct {
	client *http.Client
	// places are where they are, the most specific prefix first.
	places []place
	mirror *mirror

	front  *testcloud.Front
	owners *state.Owners
	log    *slog.Logger
}

// place is where a service is: what begins with prefix here begins with root there.
type place struct{ prefix, root string }

// passed are where this cloud has the services, by their types in the catalog. Each entry also says
// where in the catalog's address the version begins.
var passed = map[api.Service]struct{ prefix, version string }{
	api.Nova: {"/compute", "/v2.1"}, api.Neutron: {"/networking", ""}, api.Glance: {"/image", ""}, api.Cinder: {"/volume", "/v3/"},
	api.Keystone: {"", "/v3"},
}

// reachUpstream logs in and finds the services.
func reachUpstream(ctx context.Context, o *Upstream) (*upstream, error) {
	ctx, cancel := context.WithTimeout(ctx, upstreamLimit)
	defer cancel()
	administrator, err := o.logIn(ctx, o.Administrator)
	if err != nil {
		return nil, err
	}
	u := &upstream{client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for kind, at := range passed {
		url := o.IdentityEndpoint
		if kind != api.Keystone {
			url, err = administrator.EndpointLocator(gophercloud.EndpointOpts{
				Type: string(kind), Region: o.Region, Availability: gophercloud.AvailabilityPublic,
			})
		}
		if err != nil {
			return nil, fmt.Errorf("find the service %s: %w", kind, err)
		}
		if at.version != "" {
			url, _, _ = strings.Cut(url, at.version)
		}
		u.places = append(u.places, place{at.prefix, strings.TrimSuffix(url, "/")})
	}
	slices.SortFunc(u.places, func(a, b place) int { return len(b.prefix) - len(a.prefix) })
	u.mirror, err = newMirror(ctx, o, administrator)
	return u, err
}

// logIn returns a session of a user, who reaches the services directly: not as the calls come that
// are passed on.
func (o *Upstream) logIn(ctx context.Context, user string) (*gophercloud.ProviderClient, error) {
	client, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: o.IdentityEndpoint, Username: user, Password: o.Password, DomainName: "Default", AllowReauth: true,
		Scope: &gophercloud.AuthScope{ProjectName: user, DomainName: "Default"},
	})
	if err != nil {
		return nil, fmt.Errorf("log in as %s: %w", user, err)
	}
	client.HTTPClient.Timeout = upstreamLimit
	return client, nil
}

// relay serves what is no kind of call that the ledger knows.
func (u *upstream) relay(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	answer, err := u.pass(r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer.Write(w, r)
}

// pass asks the service whose call this is. The error says that there was no answer.
func (u *upstream) pass(r *http.Request, body []byte) (api.Reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), upstreamLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, u.there(r.URL.RequestURI()), bytes.NewReader(body))
	if err != nil {
		return api.Reply{}, fmt.Errorf("pass on %s: %w", r.Method, err)
	}
	request.Header = r.Header.Clone()
	// What comes back is read here.
	request.Header.Del("Accept-Encoding")
	response, err := u.client.Do(request)
	if err != nil {
		return api.Reply{}, fmt.Errorf("pass on %s: %w", r.Method, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return api.Reply{}, fmt.Errorf("pass on %s: %w", r.Method, err)
	}
	answer := api.Reply{Status: response.StatusCode, Header: response.Header.Clone(), Raw: u.here(raw, "http://"+r.Host)}
	for _, hop := range []string{"Connection", "Content-Length", "Transfer-Encoding"} {
		answer.Header.Del(hop)
	}
	if location := answer.Header.Get("Location"); location != "" {
		answer.Header.Set("Location", string(u.here([]byte(location), "http://"+r.Host)))
	}
	if answer.Status >= http.StatusBadRequest {
		answer.Words = string(raw[:min(len(raw), maxWords)])
	}
	return answer, nil
}

// there is the address of what has the path here.
func (u *upstream) there(path string) string {
	for _, p := range u.places {
		if rest, below := strings.CutPrefix(path, p.prefix); below {
			return p.root + rest
		}
	}
	return path
}

// here has all that a text says of the services' places lead to this cloud instead.
func (u *upstream) here(text []byte, base string) []byte {
	for _, p := range u.places {
		text = bytes.ReplaceAll(text, []byte(p.root), []byte(base+p.prefix))
	}
	return text
}

// takeEffect has the real service let the call take effect.
func (u *upstream) takeEffect(call *api.Call) (api.Reply, error) {
	answer, err := u.pass(call.Request, disturbed(call))
	if err != nil {
		u.log.Info("a call was not answered", "operation", call.Operation, "error", err)
		return api.Reply{}, testcloud.ErrBroken
	}
	return answer, u.front.TakeEffect(call.Turn, func() error {
		if call.Request.Method != http.MethodGet && call.Route.Service != api.Keystone && answer.Status < http.StatusBadRequest {
			noteChange(u.owners, call, answer.Raw)
		}
		return nil
	})
}

// noteChange notes what the call changed, and whose it is.
func noteChange(owners *state.Owners, call *api.Call, answer []byte) {
	var made map[string]struct {
		ID  string `json:"id"`
		MAC string `json:"mac_address"`
	}
	id, whose := call.Resource, state.Owner{Cluster: call.Cluster(), Machine: call.Machine()}
	if call.Route.Creates && json.Unmarshal(answer, &made) == nil {
		for _, one := range made {
			id = one.ID
			owners.SetName(one.MAC, whose)
		}
	}
	if call.Route.Operation == api.CreateServer {
		var asked struct{ Server marked }
		_ = json.Unmarshal(call.Body, &asked) // it was accepted
		owners.SetName(asked.Server.Name, whose)
	}
	owners.Set(id, whose)
	call.Changed(id)
}

// disturbed is the body of the call with what the driver of the test cloud's hypervisor reads,
// where the server is to fail.
func disturbed(call *api.Call) []byte {
	for _, f := range call.Struck {
		if !f.ForVM() {
			continue
		}
		var body map[string]json.RawMessage
		var server map[string]any
		if json.Unmarshal(call.Body, &body) != nil || json.Unmarshal(body["server"], &server) != nil {
			return call.Body
		}
		metadata, _ := server["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["test-fault"], metadata["test-fault-words"] = "abort", f.GetError().GetMessage()
		server["metadata"] = metadata
		body["server"], _ = json.Marshal(server) // it has just been read
		changed, _ := json.Marshal(body)         // so has this
		return changed
	}
	return call.Body
}
