package openstacksim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/pagination"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/identity"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// populate makes servers as a driver would have.
func (w *world) populate(n int) {
	w.Helper()
	for i := range n {
		vm := &backendv1alpha1.VM{Name: fmt.Sprintf("m-%d", i), ClusterUid: cluster, MachineUid: uid(i)}
		if _, err := w.hooks.CreateForeignVM(w.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: vm}); err != nil {
			w.Fatalf("create: %v", err)
		}
	}
}

func TestPagesAsClientsTurnThem(t *testing.T) {
	const all = 25
	w := open(t, Options{})
	w.populate(all)
	pages, seen := 0, map[string]bool{}
	err := servers.List(w.compute, servers.ListOpts{Tags: ownership.ClusterTag(cluster), Limit: 10}).EachPage(t.Context(),
		func(_ context.Context, page pagination.Page) (bool, error) {
			found, err := servers.ExtractServers(page)
			pages++
			for _, s := range found {
				seen[s.ID] = true
			}
			return true, err
		})
	if err != nil || len(seen) != all || pages != 3 {
		t.Errorf("%d servers on %d pages: %v", len(seen), pages, err)
	}
	pages, seen = 0, map[string]bool{}
	err = neutronports.List(w.network, neutronports.ListOpts{Description: ownership.ClusterDescription(cluster), Limit: 10}).EachPage(t.Context(),
		func(_ context.Context, page pagination.Page) (bool, error) {
			found, err := neutronports.ExtractPorts(page)
			pages++
			for _, p := range found {
				seen[p.ID] = true
			}
			return true, err
		})
	if err != nil || len(seen) != all || pages != 3 {
		t.Errorf("%d ports on %d pages: %v", len(seen), pages, err)
	}
	back := w.call("GET", "/networking/v2.0/ports?limit=10&page_reverse=True", "")
	if listed, _ := back.body["ports"].([]any); len(listed) != 10 {
		t.Errorf("the last page from behind has %d ports", len(listed))
	}
}

// TestTwoThousandServers reads no more of each than its id: reading it all takes longer than to
// write it.
func TestTwoThousandServers(t *testing.T) {
	const all = 2000
	w := open(t, Options{})
	w.populate(all)
	for _, test := range []struct{ path, collection string }{
		{"/compute/v2.1/servers/detail?limit=1000&tags=" + ownership.ClusterTag(cluster), "servers"},
		{"/networking/v2.0/ports?limit=1000&description=millwright+cluster+" + cluster, "ports"},
	} {
		pages, seen := 0, map[string]bool{}
		for path := test.path; path != ""; pages++ {
			ids, next := w.page(path, test.collection)
			for _, id := range ids {
				seen[id] = true
			}
			path = next
		}
		// The last page is empty: the one before it was full.
		if len(seen) != all || pages != 3 {
			t.Errorf("%d %s on %d pages", len(seen), test.collection, pages)
		}
	}
	w.followAll(all)
}

// page returns the ids of a page, and where the next one is.
func (w *world) page(path, collection string) (ids []string, next string) {
	w.Helper()
	got := w.call("GET", path, "")
	var body map[string][]struct {
		ID   string `json:"id"`
		Rel  string `json:"rel"`
		Href string `json:"href"`
	}
	if err := json.Unmarshal([]byte(got.raw), &body); err != nil {
		w.Fatalf("%d %s", got.status, got.raw)
	}
	for _, one := range body[collection] {
		ids = append(ids, one.ID)
	}
	for _, link := range body[collection+"_links"] {
		if link.Rel == "next" {
			next = strings.TrimPrefix(link.Href, w.server.URL)
		}
	}
	return ids, next
}

// followAll reads all VMs by the hooks, page by page.
func (w *world) followAll(all int) {
	w.Helper()
	seen := 0
	for r := (&backendv1alpha1.ListVMsRequest{}); ; {
		answer, err := w.hooks.ListVMs(w.Context(), r)
		if err != nil {
			w.Fatalf("list VMs: %v", err)
		}
		seen += len(answer.GetVms())
		if !answer.GetMore() {
			break
		}
		r.AfterRevision = answer.GetVms()[len(answer.GetVms())-1].GetRevision()
	}
	if seen != all {
		w.Errorf("the hooks list %d VMs", seen)
	}
}

func TestFilters(t *testing.T) {
	w := open(t, Options{})
	w.machine("a")
	w.machine("b")
	tag := ownership.ClusterTag(cluster)
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"", []string{"name-a", "name-b"}},
		{"?tags=" + tag, []string{"name-a", "name-b"}},
		{"?tags=" + tag + "," + ownership.MachineTag("a"), []string{"name-a"}},
		{"?tags=" + tag + "&tags-any=" + ownership.MachineTag("b") + "," + ownership.MachineTag("c"), []string{"name-b"}},
		{"?tags=" + tag + "&tags-any=" + ownership.MachineTag("c"), nil},
		{"?not-tags=" + ownership.MachineTag("a"), []string{"name-b"}},
		{"?name=%5Ename-a%24", []string{"name-a"}},
		{"?name=NAME-A", []string{"name-a"}},
		{"?name=ame-", []string{"name-a", "name-b"}},
		{"?name=%5E(name-a%7Cname-b)%24", nil},
		{"?name=name-a&name=name-b", []string{"name-b"}},
		{"?status=ACTIVE", []string{"name-a", "name-b"}},
		{"?status=error&status=SHUTOFF", nil},
		{"?ip=10.0.", []string{"name-a", "name-b"}},
		{"?ip=192.0.", nil},
		{"?flavor=" + flavorID("m1.tiny"), []string{"name-a", "name-b"}},
		{"?image=" + nobody, nil},
		{"?nonsense=x", []string{"name-a", "name-b"}},
		{"?sort_key=display_name&sort_dir=asc&limit=1", []string{"name-a"}},
		{"?changes-since=2100-01-01T00:00:00Z", nil},
	} {
		got := w.call("GET", "/compute/v2.1/servers"+test.query, "")
		var names []string
		listed, _ := got.body["servers"].([]any)
		for _, one := range listed {
			names = append(names, one.(map[string]any)["name"].(string))
		}
		if slices.Sort(names); got.status != 200 || !slices.Equal(names, test.want) {
			t.Errorf("%s: %d %q, want %q", test.query, got.status, names, test.want)
		}
	}
}

func TestPortFilters(t *testing.T) {
	w := open(t, Options{})
	a, serverA := w.machine("a")
	b, _ := w.machine("b")
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"?description=" + "millwright+cluster+" + cluster, []string{a, b}},
		{"?description=millwright", nil},
		{"?name=" + ownerOf("a").PortName() + "&name=" + ownerOf("x").PortName(), []string{a}},
		{"?name=" + ownerOf("a").PortName() + "&name=" + ownerOf("b").PortName(), []string{a, b}},
		{"?device_id=" + serverA, []string{a}},
		{"?device_owner=compute:nova", []string{a, b}},
		{"?mac_address=" + ownerOf("b").MAC(0), []string{b}},
		{"?status=ACTIVE&device_owner=compute:nova&network_id=" + networkID(w), []string{a, b}},
		{"?admin_state_up=false", nil},
		{"?id=" + b, []string{b}},
		{"?fixed_ips=ip_address=192.0.2.1", nil},
		{"?name=&device_owner=compute:nova", []string{a, b}},
		{"?limit=1&sort_key=name&sort_dir=desc&device_owner=compute:nova", []string{b}},
	} {
		got := w.call("GET", "/networking/v2.0/ports"+test.query, "")
		var ids []string
		listed, _ := got.body["ports"].([]any)
		for _, one := range listed {
			ids = append(ids, one.(map[string]any)["id"].(string))
		}
		want := slices.Sorted(slices.Values(test.want))
		if slices.Sort(ids); got.status != 200 || !slices.Equal(ids, want) {
			t.Errorf("%s: %d %q, want %q", test.query, got.status, ids, want)
		}
	}
}

func TestDeletedServersShowWithChangesSince(t *testing.T) {
	w := open(t, Options{})
	_, server := w.machine("a")
	if got := w.call("DELETE", "/compute/v2.1/servers/"+server, ""); got.status != 204 {
		t.Fatalf("delete: %d", got.status)
	}
	got := w.call("GET", "/compute/v2.1/servers/detail?changes-since=2000-01-01T00:00:00Z&name=%5Ename-a%24", "")
	listed, _ := got.body["servers"].([]any)
	if len(listed) != 1 {
		t.Fatalf("%d %s", got.status, got.raw)
	}
	s := listed[0].(map[string]any)
	if s["status"] != "DELETED" || len(s["metadata"].(map[string]any)) != 0 || len(s["tags"].([]any)) != 0 || s["OS-SRV-USG:terminated_at"] == nil {
		t.Errorf("%v", s)
	}
	if got := w.call("GET", "/compute/v2.1/servers/detail?changes-since=2000-01-01T00:00:00Z&tags="+ownership.ClusterTag(cluster), ""); got.raw != `{"servers":[]}` {
		t.Errorf("by tag: %s", got.raw)
	}
	if got := w.call("GET", "/compute/v2.1/servers?limit=1&marker="+server, ""); got.status != 200 {
		t.Errorf("a server that is gone as marker: %d", got.status)
	}
}

func BenchmarkListServers(b *testing.B) {
	c := New(Options{})
	defer func() { _ = c.Close() }()
	h := newHooks(c)
	for i := range 2000 {
		_, err := h.CreateForeignVM(b.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: "m", ClusterUid: cluster, MachineUid: uid(i)}})
		if err != nil {
			b.Fatal(err)
		}
	}
	who := c.keystone.Users[state.HexID("user", "demo")]
	c.keystone.Tokens["t"] = &identity.Token{ID: "t", UserID: who.ID, User: who, Scoped: true, Expires: testcloud.Now().AddDate(1, 0, 0)}
	for _, path := range []string{
		"/compute/v2.1/servers/detail?tags=" + ownership.ClusterTag(cluster),
		"/compute/v2.1/servers/detail?tags=" + ownership.ClusterTag(cluster) + "&tags-any=" + ownership.MachineTag(uid(7)),
		"/networking/v2.0/ports?limit=1000&description=millwright+cluster+" + cluster,
	} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				c.listOnce(b, path)
			}
		})
	}
}

func (c *Cloud) listOnce(b *testing.B, path string) {
	b.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("X-Auth-Token", "t")
	request.Header.Set(api.VersionHeader, "compute 2.67")
	recorder := httptest.NewRecorder()
	c.Handler().ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		b.Fatalf("%d %s", recorder.Code, recorder.Body)
	}
}
