package openstacksim

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// seen is what tests can see of a cloud.
type seen struct {
	Servers, Ports, FloatingIPs, Volumes, Trunks, Groups string
	VMs                                                  *backendv1alpha1.ListVMsResponse
	Resources                                            *backendv1alpha1.ListResourcesResponse
	Totals                                               *backendv1alpha1.GetTotalsResponse
	Calls                                                *backendv1alpha1.ListCallsResponse
}

func (w *world) see(token string) seen {
	w.Helper()
	list := func(path string) string {
		return w.call("GET", path, "", "X-Auth-Token", token, api.VersionHeader, "").raw
	}
	s := seen{
		Servers: list("/compute/v2.1/servers/detail?changes-since=2000-01-01"), Ports: list("/networking/v2.0/ports"),
		FloatingIPs: list("/networking/v2.0/floatingips"), Volumes: list("/volume/v3/p/volumes/detail"), Trunks: list("/networking/v2.0/trunks"),
		Groups: list("/compute/v2.1/os-server-groups"),
	}
	s.VMs, _ = w.hooks.ListVMs(w.Context(), nil)
	s.Resources, _ = w.hooks.ListResources(w.Context(), nil)
	return s
}

func TestTheJournalOutlivesTheCloud(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	w := open(t, Options{Journal: path})
	port, _ := w.machine("a")
	_, gone := w.machine("b")
	w.call("POST", "/networking/v2.0/floatingips", `{"floatingip": {"floating_network_id": "`+w.externalID()+`", "port_id": "`+port+`", "description": "`+ownerOf("a").Description()+`"}}`)
	w.call("POST", "/volume/v3/p/volumes", `{"volume": {"size": 1, "name": "v"}}`, api.VersionHeader, "")
	w.call("POST", "/compute/v2.1/os-server-groups", `{"server_group": {"name": "g", "policy": "affinity"}}`)
	w.call("DELETE", "/compute/v2.1/servers/"+gone, "")
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{state.KindVM: 7}}); err != nil {
		t.Fatal(err)
	}
	token := w.provider.Token()
	before := w.see(token)
	before.Totals, _ = w.hooks.GetTotals(t.Context(), nil)
	before.Calls, _ = w.hooks.ListCalls(t.Context(), &backendv1alpha1.ListCallsRequest{MachineUid: "a"})
	// Not closed: it is killed.
	if err := appendTo(path, `{"items":[{"kind":"port","id":"torn`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// The second time it reads what the first one has rewritten.
		again := serve(t, Options{Journal: path})
		again.server.Config.Handler = again.cloud.Handler()
		totals, _ := again.hooks.GetTotals(t.Context(), nil)
		calls, _ := again.hooks.ListCalls(t.Context(), &backendv1alpha1.ListCallsRequest{MachineUid: "a"})
		after := again.seeAt(w.server.URL, token)
		if totals.GetVmsCreated() != 2 || totals.GetVmsPeak() != 2 || totals.GetCalls()["CreateServer"] != 2 {
			t.Errorf("totals: %v", totals)
		}
		after.Calls, after.Totals = calls, before.Totals
		if diff := cmp.Diff(before, after, protocmp.Transform(), protocmp.IgnoreFields(&backendv1alpha1.Call{}, "revision")); diff != "" {
			t.Errorf("after kill -9 (-before +after):\n%s", diff)
		}
		if limit := again.cloud.store.Quotas.Limit("", state.KindVM); limit != 7 {
			t.Errorf("the quota is %d", limit)
		}
		if err := again.cloud.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// seeAt is see, with the answers as they would be at another address.
func (w *world) seeAt(url, token string) seen {
	s := w.see(token)
	for _, text := range []*string{&s.Servers, &s.Ports, &s.FloatingIPs, &s.Volumes, &s.Trunks, &s.Groups} {
		*text = replaceAll(*text, w.server.URL, url)
	}
	return s
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(text)
	return err
}

func TestServersGoOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	w := open(t, Options{Journal: path, BootLatency: time.Hour})
	_, id := w.machine("a")
	again := serve(t, Options{Journal: path})
	s := again.cloud.nova.Servers.Alive.ByID[id]
	if s.VMState != compute.VMBuilding || s.Due.IsZero() {
		t.Errorf("after a restart it is %s, due %s", s.VMState, s.Due)
	}
	again.provider = w.provider
	again.advance(id)
	again.advance(id)
	if p := again.cloud.neutron.Ports.ByID[s.PortIDs()[0]]; s.VMState != compute.VMActive || !p.Active {
		t.Errorf("it is %s, its port %v", s.VMState, p.Active)
	}
}

func TestAddressesAreNotGivenTwiceAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	w := open(t, Options{Journal: path})
	first, err := w.createPort("a")
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, Options{Journal: path})
	second, err := again.createPort("b")
	if err != nil || second.FixedIPs[0].IPAddress == first.FixedIPs[0].IPAddress {
		t.Errorf("%v and %v, %v", first.FixedIPs, second, err)
	}
	if _, err := again.createPort("a"); err == nil {
		t.Error("the MAC address is free")
	}
}
