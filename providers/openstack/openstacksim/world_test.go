package openstacksim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// world is a cloud, served over HTTP, with its hooks called without a wire, and one who is logged
// in to it.
type world struct {
	*testing.T
	cloud    *Cloud
	server   *httptest.Server
	hooks    backendv1alpha1.BackendServiceServer
	provider *gophercloud.ProviderClient

	compute, network, image, volume *gophercloud.ServiceClient
}

func open(t *testing.T, o Options) *world {
	t.Helper()
	w := serve(t, o)
	w.login("demo")
	return w
}

// serve is open without a login.
func serve(t *testing.T, o Options) *world {
	t.Helper()
	c, err := Open(o)
	if err != nil {
		t.Fatalf("open cloud: %v", err)
	}
	server := httptest.NewServer(c.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = c.Close() })
	return &world{T: t, cloud: c, server: server, hooks: c.hooks()}
}

func options(user string) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{
		Username: user, Password: Password, DomainName: "Default", AllowReauth: true,
		Scope: &gophercloud.AuthScope{ProjectName: user, DomainName: "Default"},
	}
}

// login has the world's clients be those of a user.
func (w *world) login(user string) {
	w.Helper()
	o := options(user)
	o.IdentityEndpoint = w.server.URL + "/v3"
	provider, err := openstack.AuthenticatedClient(w.Context(), o)
	if err != nil {
		w.Fatalf("login: %v", err)
	}
	w.provider = provider
	w.compute = w.service(openstack.NewComputeV2)
	w.compute.Microversion = "2.67"
	w.network, w.image = w.service(openstack.NewNetworkV2), w.service(openstack.NewImageV2)
	if !w.cloud.options.WithoutCinder {
		w.volume = w.service(openstack.NewBlockStorageV3)
	}
}

func (w *world) service(of func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) *gophercloud.ServiceClient {
	w.Helper()
	client, err := of(w.provider, gophercloud.EndpointOpts{Region: "RegionOne"})
	if err != nil {
		w.Fatalf("find an endpoint: %v", err)
	}
	return client
}

// answer is what came back for a call.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

// call makes a call as it is, at an address relative to the cloud.
func (w *world) call(method, path, body string, headers ...string) answer {
	w.Helper()
	return w.callIn(w.Context(), method, path, body, headers...)
}

func (w *world) callIn(ctx context.Context, method, path, body string, headers ...string) answer {
	w.Helper()
	got, err := w.try(ctx, method, path, body, headers...)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

func (w *world) try(ctx context.Context, method, path, body string, headers ...string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", "application/json")
	if w.provider != nil {
		request.Header.Set("X-Auth-Token", w.provider.Token())
	}
	request.Header.Set(api.VersionHeader, "compute 2.67")
	for n := 0; n+1 < len(headers); n += 2 {
		request.Header.Set(headers[n], headers[n+1])
	}
	response, err := w.server.Client().Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	got := answer{status: response.StatusCode, header: response.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &got.body)
	return got, nil
}

// the ids of what the default world has.
func flavorID(name string) string { return state.NamedID("flavor", "/"+name) }
func imageID(w *world) string {
	return state.NamedID("image", w.cloud.keystone.ProjectID("admin")+"/tiny-raw")
}
func networkID(w *world) string     { return w.given("demo", "demo-net") }
func (w *world) externalID() string { return w.given("admin", "ext-net") }
func (w *world) given(project, name string) string {
	return state.NamedID("network", w.cloud.keystone.ProjectID(project)+"/"+name)
}

const cluster = "c1"

func ownerOf(uid string) ownership.Owner {
	return ownership.Owner{Cluster: cluster, Namespace: "ns", Name: "name-" + uid, UID: uid}
}

// createPort makes a machine's port as a driver does.
func (w *world) createPort(uid string) (*neutronports.Port, error) {
	o := ownerOf(uid)
	return neutronports.Create(w.Context(), w.network, neutronports.CreateOpts{
		NetworkID: networkID(w), Name: o.PortName(), Description: ownership.ClusterDescription(o.Cluster), MACAddress: o.MAC(0),
	}).Extract()
}

// createServer makes a machine's server as a driver does.
func (w *world) createServer(uid, portID string) (*servers.Server, error) {
	o := ownerOf(uid)
	return servers.Create(w.Context(), w.compute, servers.CreateOpts{
		Name: o.ServerName(), FlavorRef: flavorID("m1.tiny"), ImageRef: imageID(w), Networks: []servers.Network{{Port: portID}},
		Metadata: o.Metadata(), Tags: []string{ownership.ClusterTag(o.Cluster), ownership.MachineTag(o.UID)}, UserData: []byte("#cloud-config of " + uid),
	}, nil).Extract()
}

// machine makes port and server of a machine.
func (w *world) machine(uid string) (port, server string) {
	w.Helper()
	p, err := w.createPort(uid)
	if err != nil {
		w.Fatalf("create port: %v", err)
	}
	s, err := w.createServer(uid, p.ID)
	if err != nil {
		w.Fatalf("create server: %v", err)
	}
	return p.ID, s.ID
}

func (w *world) inject(f *backendv1alpha1.Fault) string {
	w.Helper()
	injected, err := w.hooks.InjectFault(w.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f})
	if err != nil {
		w.Fatalf("inject: %v", err)
	}
	return injected.GetId()
}

func (w *world) removeFaults() {
	w.Helper()
	if _, err := w.hooks.RemoveFaults(w.Context(), &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		w.Fatalf("remove faults: %v", err)
	}
}

// eventually waits until something is so; it looks again at each change of the cloud.
func (w *world) eventually(what string, so func() bool) {
	w.Helper()
	w.cloud.front.Poll(w.Context(), time.Minute, so)
	w.cloud.front.Lock()
	defer w.cloud.front.Unlock()
	if !so() {
		w.Fatalf("waited in vain: %s", what)
	}
}

func uid(n int) string { return fmt.Sprintf("uid-%04d", n) }
