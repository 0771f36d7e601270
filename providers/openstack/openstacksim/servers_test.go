package openstacksim

import (
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/volumeattach"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
)

func (w *world) status(id string) string {
	w.Helper()
	s, err := servers.Get(w.Context(), w.compute, id).Extract()
	if err != nil {
		w.Fatalf("get server: %v", err)
	}
	return s.Status
}

func TestServersTakeTheirTime(t *testing.T) {
	w := open(t, Options{BindLatency: time.Millisecond, BootLatency: 3 * time.Millisecond, DeleteLatency: 2 * time.Millisecond})
	port, server := w.machine("a")
	w.eventually("the server boots", func() bool {
		s := w.cloud.nova.Servers.Alive.ByID[server]
		return s != nil && s.VMState == compute.VMActive
	})
	p, err := neutronports.Get(t.Context(), w.network, port).Extract()
	if err != nil || p.DeviceID != server || p.Status != "ACTIVE" || p.DeviceOwner != "compute:nova" {
		t.Errorf("port: %+v, %v", p, err)
	}
	if err := servers.Delete(t.Context(), w.compute, server).ExtractErr(); err != nil {
		t.Errorf("delete: %v", err)
	}
	w.eventually("the server goes", func() bool { return w.cloud.nova.Servers.Gone[server] != nil })
	if p, err = neutronports.Get(t.Context(), w.network, port).Extract(); err != nil || p.DeviceID != "" {
		t.Errorf("port: %+v, %v", p, err)
	}
}

func TestDeletingTakesTwoSteps(t *testing.T) {
	w := open(t, Options{DeleteLatency: time.Hour})
	port, server := w.machine("a")
	for range 2 {
		if got := w.call("DELETE", "/compute/v2.1/servers/"+server, ""); got.status != 204 {
			t.Errorf("delete: %d", got.status)
		}
	}
	got := w.call("GET", "/compute/v2.1/servers/"+server, "")
	if s := got.body["server"].(map[string]any); s["status"] != "ACTIVE" || s["OS-EXT-STS:task_state"] != "deleting" || len(s["addresses"].(map[string]any)) != 1 {
		t.Errorf("being deleted: %v", s)
	}
	w.advance(server)
	if p, err := neutronports.Get(t.Context(), w.network, port).Extract(); err != nil || p.DeviceID != "" || w.status(server) != "ACTIVE" {
		t.Errorf("the port is free before the server is gone: %+v, %v", p, err)
	}
	w.advance(server)
	if got := w.call("GET", "/compute/v2.1/servers/"+server, ""); got.status != 404 {
		t.Errorf("gone: %d", got.status)
	}
}

// advance has happen what a server waits for.
func (w *world) advance(id string) {
	w.cloud.front.Lock()
	defer w.cloud.front.Unlock()
	w.cloud.nova.Advance(w.cloud.nova.Servers.Alive.ByID[id])
}

func TestTwoServersOnOnePort(t *testing.T) {
	w := open(t, Options{BindLatency: time.Hour, BootLatency: time.Hour})
	p, err := w.createPort("a")
	if err != nil {
		t.Fatalf("create port: %v", err)
	}
	first, err := w.createServer("a", p.ID)
	if err != nil {
		t.Fatalf("first: %v", err)
	}
	second, err := w.createServer("a", p.ID)
	if err != nil {
		t.Fatalf("second: %v", err)
	}
	w.advance(first.ID)
	if _, err := w.createServer("a", p.ID); !gophercloud.ResponseCodeIs(err, 409) {
		t.Errorf("third: %v", err)
	}
	w.advance(first.ID)
	w.advance(second.ID)
	one, err := servers.Get(t.Context(), w.compute, first.ID).Extract()
	if err != nil || one.Status != "ACTIVE" || len(one.Addresses) != 0 {
		t.Errorf("first: %+v, %v", one, err)
	}
	two, err := servers.Get(t.Context(), w.compute, second.ID).Extract()
	if err != nil || two.Status != "ERROR" || !strings.Contains(two.Fault.Message, "Failed to allocate the network(s), not rescheduling.") {
		t.Errorf("second: %+v, %v", two, err)
	}
	if p, err = neutronports.Get(t.Context(), w.network, p.ID).Extract(); err != nil || p.DeviceID != "" {
		t.Errorf("port: %+v, %v", p, err)
	}
}

func TestActions(t *testing.T) {
	w := open(t, Options{})
	_, id := w.machine("a")
	for _, test := range []struct {
		action string
		status int
		state  string
	}{
		{`{"os-start": null}`, 409, "ACTIVE"},
		{`{"os-stop": null}`, 202, "SHUTOFF"},
		{`{"os-start": null}`, 202, "ACTIVE"},
		{`{"pause": null}`, 202, "PAUSED"},
		{`{"unpause": null}`, 202, "ACTIVE"},
		{`{"suspend": null}`, 202, "SUSPENDED"},
		{`{"resume": null}`, 202, "ACTIVE"},
		{`{"rescue": {}}`, 200, "RESCUE"},
		{`{"unrescue": null}`, 202, "ACTIVE"},
		{`{"shelve": null}`, 202, "SHELVED_OFFLOADED"},
		{`{"unshelve": null}`, 202, "ACTIVE"},
		{`{"reboot": {"type": "HARD"}}`, 202, "ACTIVE"},
		{`{"resize": {"flavorRef": "nonsense"}}`, 400, "ACTIVE"},
		{`{"resize": {"flavorRef": "` + flavorID("m1.small") + `"}}`, 202, "VERIFY_RESIZE"},
		{`{"pause": null}`, 409, "VERIFY_RESIZE"},
		{`{"revertResize": null}`, 202, "ACTIVE"},
		{`{"resize": {"flavorRef": "` + flavorID("m1.small") + `"}}`, 202, "VERIFY_RESIZE"},
		{`{"confirmResize": null}`, 202, "ACTIVE"},
		{`{"resize": {"flavorRef": "` + flavorID("m1.small") + `"}}`, 400, "ACTIVE"},
		{`{"migrate": null}`, 403, "ACTIVE"},
		{`{"lock": null}`, 202, "ACTIVE"},
		{`{"os-stop": null}`, 409, "ACTIVE"},
		{`{"os-resetState": {"state": "error"}}`, 403, "ACTIVE"},
		{`{"nonsense": null}`, 400, "ACTIVE"},
	} {
		got := w.call("POST", "/compute/v2.1/servers/"+id+"/action", test.action)
		if state := w.status(id); got.status != test.status || state != test.state {
			t.Errorf("%s: %d %s, %s", test.action, got.status, got.raw, state)
		}
	}
	w.check([]apiCase{
		{"delete what is locked", "DELETE", "/compute/v2.1/servers/" + id, "", 409, "Instance " + id + " is locked"},
		{"unlock", "POST", "/compute/v2.1/servers/" + id + "/action", `{"unlock": null}`, 202, ""},
		{"delete", "DELETE", "/compute/v2.1/servers/" + id, "", 204, ""},
	})
	if n := len(w.calls("StopServer", "a")); n != 2 {
		t.Errorf("the ledger has %d stops", n)
	}
}

// A server whose resize fails is in ERROR, and still has been launched; one that could not be built
// has not.
func TestAFailedResizeLeavesTheServer(t *testing.T) {
	w := open(t, Options{})
	port, id := w.machine("a")
	at := "/compute/v2.1/servers/" + id
	_, after, _ := strings.Cut(w.call("GET", at, "").raw, `"OS-SRV-USG:launched_at":"`)
	launched, _, _ := strings.Cut(after, `"`)
	w.inject(&backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: "ResizeServer"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS,
		Error: &backendv1alpha1.FaultError{Message: words}, Times: 1,
	})
	if got := w.call("POST", at+"/action", `{"resize": {"flavorRef": "`+flavorID("m1.small")+`"}}`); got.status != 202 {
		t.Fatalf("%d %s", got.status, got.raw)
	}
	w.check([]apiCase{
		{"its state", "GET", at, "", 200, `"status":"ERROR"`},
		{"why", "GET", at, "", 200, words},
		{"its launch", "GET", at, "", 200, launched},
		{"its port", "GET", "/networking/v2.0/ports/" + port, "", 200, id},
		{"reboot", "POST", at + "/action", `{"reboot": {"type": "HARD"}}`, 202, ""},
		{"is up again", "GET", at, "", 200, `"status":"ACTIVE"`},
	})
	if launched == "" {
		t.Error("a server that runs was not launched")
	}
}

func TestTagsAndMetadata(t *testing.T) {
	w := open(t, Options{})
	_, id := w.machine("a")
	at := "/compute/v2.1/servers/" + id
	w.check([]apiCase{
		{"metadata", "GET", at + "/metadata", "", 200, `"millwright-machine":"a"`},
		{"more metadata", "POST", at + "/metadata", `{"metadata": {"x": "y"}}`, 200, `"x":"y"`},
		{"one less", "DELETE", at + "/metadata/x", "", 204, ""},
		{"one less again", "DELETE", at + "/metadata/x", "", 404, "Metadata item was not found"},
		{"other metadata", "PUT", at + "/metadata", `{"metadata": {"z": "1"}}`, 200, `{"metadata":{"z":"1"}}`},
		{"tags", "GET", at + "/tags", "", 200, `"millwright-machine=a"`},
		{"one tag", "PUT", at + "/tags/t", "", 201, ""},
		{"one tag again", "PUT", at + "/tags/t", "", 204, ""},
		{"found by it", "GET", "/compute/v2.1/servers?tags=t", "", 200, id},
		{"one tag less", "DELETE", at + "/tags/t", "", 204, ""},
		{"one tag less again", "DELETE", at + "/tags/t", "", 404, "Instance " + id + " has no tag 't'"},
		{"not found by it", "GET", "/compute/v2.1/servers?tags=t", "", 200, `{"servers":[]}`},
		{"other tags", "PUT", at + "/tags", `{"tags": ["b", "a"]}`, 200, `{"tags":["a","b"]}`},
		{"other name", "PUT", at, `{"server": {"name": "new", "description": "d"}}`, 200, `"description":"d"`},
		{"found by name", "GET", "/compute/v2.1/servers?name=%5Enew%24", "", 200, id},
	})
	found, err := w.hooks.ListResources(t.Context(), nil)
	if err != nil || len(found.GetResources()) != 2 || found.GetResources()[1].GetMachineUid() != "" {
		t.Errorf("without its marks it is nobody's: %v, %v", found, err)
	}
}

func TestPortsThatNovaMakesGoWithTheServer(t *testing.T) {
	w := open(t, Options{})
	s, err := servers.Create(t.Context(), w.compute, servers.CreateOpts{
		Name: "n", FlavorRef: flavorID("m1.tiny"), ImageRef: imageID(w), Networks: []servers.Network{{UUID: networkID(w), FixedIP: "10.0.9.9"}},
		SecurityGroups: []string{"metakube-mmxfcmgjkx"}, Metadata: ownerOf("a").Metadata(),
	}, nil).Extract()
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	got := w.call("GET", "/compute/v2.1/servers/"+s.ID, "")
	if !strings.Contains(got.raw, `"addr":"10.0.9.9"`) || !strings.Contains(got.raw, `"security_groups":[{"name":"metakube-mmxfcmgjkx"}]`) {
		t.Errorf("server: %s", got.raw)
	}
	if left := w.left("a"); left != 2 {
		t.Errorf("the machine has %d resources", left)
	}
	if got := w.call("GET", "/compute/v2.1/servers/"+s.ID+"/os-interface", ""); !strings.Contains(got.raw, `"ip_address":"10.0.9.9"`) {
		t.Errorf("interfaces: %s", got.raw)
	}
	if err := servers.Delete(t.Context(), w.compute, s.ID).ExtractErr(); err != nil {
		t.Errorf("delete: %v", err)
	}
	if left := w.left("a"); left != 0 {
		t.Errorf("%d resources are left", left)
	}
}

func TestNoValidHost(t *testing.T) {
	w := open(t, Options{})
	p, err := w.createPort("a")
	if err != nil {
		t.Fatalf("create port: %v", err)
	}
	made := w.call("POST", "/compute/v2.1/servers", `{"server": {"name": "n", "imageRef": "`+imageID(w)+`", "flavorRef": "`+flavorID("m1.huge")+`", "networks": [{"port": "`+p.ID+`"}]}}`)
	id := made.body["server"].(map[string]any)["id"].(string)
	s, err := servers.Get(t.Context(), w.compute, id).Extract()
	if err != nil || s.Status != "ERROR" || s.Fault.Code != 500 || !strings.HasPrefix(s.Fault.Message, "No valid host was found.") {
		t.Errorf("server: %+v, %v", s, err)
	}
	if _, err := w.createServer("a", p.ID); err != nil {
		t.Errorf("another server on the port: %v", err)
	}
}

func TestVolumes(t *testing.T) {
	w := open(t, Options{})
	v, err := volumes.Create(t.Context(), w.volume, volumes.CreateOpts{Size: 3, Name: "data", VolumeType: "ssd", Metadata: ownerOf("a").Metadata()}, nil).Extract()
	if err != nil || v.Status != "creating" {
		t.Fatalf("create: %+v, %v", v, err)
	}
	_, id := w.machine("a")
	if _, err := volumeattach.Create(t.Context(), w.compute, id, volumeattach.CreateOpts{VolumeID: v.ID}).Extract(); err != nil {
		t.Errorf("attach: %v", err)
	}
	if v, err = volumes.Get(t.Context(), w.volume, v.ID).Extract(); err != nil || v.Status != "in-use" || v.Attachments[0].ServerID != id || v.VolumeType != "ssd" {
		t.Errorf("attached: %+v, %v", v, err)
	}
	project := "/volume/v3/" + w.cloud.keystone.ProjectID("demo")
	for _, one := range []apiCase{
		{"delete what is attached", "DELETE", "/volumes/" + v.ID, "", 400, "Invalid volume: Volume status must be available or error"},
		{"by metadata", "GET", "/volumes?metadata=%7B'millwright-machine':'a'%7D", "", 200, v.ID},
		{"by other metadata", "GET", "/volumes?metadata=%7B'millwright-machine':'b'%7D", "", 200, `{"volumes":[]}`},
		{"by name", "GET", "/volumes/detail?name=data", "", 200, v.ID},
		{"unknown", "GET", "/volumes/" + nobody, "", 404, "Volume " + nobody + " could not be found."},
		{"unknown type", "POST", "/volumes", `{"volume": {"size": 1, "volume_type": "nothing"}}`, 404, "Volume type with name nothing could not be found."},
		{"no size", "POST", "/volumes", `{"volume": {"size": 0}}`, 400, "Invalid input for field/attribute size. Value: 0. 0 is less than the minimum of 1"},
		{"unknown image", "POST", "/volumes", `{"volume": {"size": 1, "imageRef": "` + nobody + `"}}`, 400, "Invalid image identifier"},
		{"unknown zone", "POST", "/volumes", `{"volume": {"size": 1, "availability_zone": "nowhere"}}`, 400, "Availability zone 'nowhere' is invalid."},
		{"types", "GET", "/types", "", 200, `"name":"ssd"`},
	} {
		got := w.call(one.method, project+one.path, one.body, api.VersionHeader, "")
		if got.status != one.status || !strings.Contains(got.raw, one.says) {
			t.Errorf("%s: %d %s", one.name, got.status, got.raw)
		}
	}
	if got := w.call("GET", project+"/volumes", "", api.VersionHeader, "compute 2.67"); got.status != 400 {
		t.Errorf("with Nova's version: %d %s", got.status, got.raw)
	}
	if err := servers.Delete(t.Context(), w.compute, id).ExtractErr(); err != nil {
		t.Errorf("delete server: %v", err)
	}
	if v, err = volumes.Get(t.Context(), w.volume, v.ID).Extract(); err != nil || v.Status != "available" {
		t.Errorf("after its server: %+v, %v", v, err)
	}
}

func TestBootFromVolume(t *testing.T) {
	w := open(t, Options{})
	disk := servers.BlockDevice{
		SourceType: servers.SourceImage, DestinationType: servers.DestinationVolume, UUID: imageID(w), VolumeSize: 5, VolumeType: "ssd", DeleteOnTermination: true,
	}
	blank := servers.BlockDevice{SourceType: servers.SourceBlank, DestinationType: servers.DestinationVolume, VolumeSize: 2, BootIndex: -1}
	s, err := servers.Create(t.Context(), w.compute, servers.CreateOpts{
		Name: "n", FlavorRef: flavorID("m1.nodisk"), Networks: "none", BlockDevice: []servers.BlockDevice{disk, blank}, Metadata: ownerOf("a").Metadata(),
	}, nil).Extract()
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	got := w.call("GET", "/compute/v2.1/servers/"+s.ID, "")
	if !strings.Contains(got.raw, `"image":""`) || strings.Count(got.raw, `"delete_on_termination"`) != 2 {
		t.Errorf("server: %s", got.raw)
	}
	if left := w.left("a"); left != 3 {
		t.Errorf("the machine has %d resources", left)
	}
	if err := servers.Delete(t.Context(), w.compute, s.ID).ExtractErr(); err != nil {
		t.Errorf("delete: %v", err)
	}
	if left := w.left("a"); left != 1 {
		t.Errorf("%d resources are left, want the volume that outlives its server", left)
	}
	w.check([]apiCase{
		{"unknown volume", "POST", "/compute/v2.1/servers", `{"server": {"name": "n", "flavorRef": "` + flavorID("m1.tiny") + `", "networks": "none", "block_device_mapping_v2": [{"boot_index": 0, "source_type": "volume", "destination_type": "volume", "uuid": "` + nobody + `"}]}}`, 400, "Block Device Mapping is Invalid: failed to get volume " + nobody + "."},
		{"unknown type", "POST", "/compute/v2.1/servers", `{"server": {"name": "n", "flavorRef": "` + flavorID("m1.tiny") + `", "networks": "none", "block_device_mapping_v2": [{"boot_index": 0, "source_type": "image", "destination_type": "volume", "volume_size": 1, "volume_type": "nothing", "uuid": "` + imageID(w) + `"}]}}`, 400, "Volume type nothing could not be found."},
	})
}

func TestWithoutCinder(t *testing.T) {
	w := open(t, Options{WithoutCinder: true})
	if got := w.call("GET", "/volume/v3/p/volumes", "", api.VersionHeader, ""); got.status != 404 {
		t.Errorf("volumes: %d", got.status)
	}
	for _, test := range []struct {
		source string
		status int
	}{{"image", 202}, {"volume", 500}} {
		got := w.call("POST", "/compute/v2.1/servers", `{"server": {"name": "n", "flavorRef": "`+flavorID("m1.tiny")+`", "networks": "none", "block_device_mapping_v2": [{"boot_index": 0, "source_type": "`+test.source+`", "destination_type": "volume", "volume_size": 1, "uuid": "`+imageID(w)+`"}]}}`)
		if got.status != test.status {
			t.Errorf("%s: %d %s", test.source, got.status, got.raw)
		}
	}
}

func TestServerGroups(t *testing.T) {
	w := open(t, Options{})
	const seeds = "fe9dcd44-f08a-492a-9e64-4e38e1d51573"
	made := w.call("POST", "/compute/v2.1/servers", `{"server": {"name": "n", "imageRef": "`+imageID(w)+`", "flavorRef": "`+flavorID("m1.tiny")+`", "networks": "none"}, "os:scheduler_hints": {"group": "`+seeds+`"}}`)
	id := made.body["server"].(map[string]any)["id"].(string)
	w.check([]apiCase{
		{"members", "GET", "/compute/v2.1/os-server-groups/" + seeds, "", 200, `"members":["` + id + `"]`},
		{"new one", "POST", "/compute/v2.1/os-server-groups", `{"server_group": {"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 1}}}`, 200, `"rules":{"max_server_per_host":1}`},
		{"list", "GET", "/compute/v2.1/os-server-groups?offset=1&limit=1", "", 200, `{"server_groups":[{`},
		{"delete", "DELETE", "/compute/v2.1/os-server-groups/" + seeds, "", 204, ""},
	})
}

func TestGroupsWhoseServersShareNoHost(t *testing.T) {
	w := open(t, Options{HostsPerZone: 2})
	made := w.call("POST", "/compute/v2.1/os-server-groups", `{"server_group": {"name": "g", "policy": "anti-affinity"}}`)
	group := made.body["server_group"].(map[string]any)["id"].(string)
	for _, want := range []string{"ACTIVE", "ACTIVE", "ERROR"} {
		got := w.call("POST", "/compute/v2.1/servers", `{"server": {"name": "n", "imageRef": "`+imageID(w)+`", "flavorRef": "`+flavorID("m1.tiny")+`", "networks": "none"}, "os:scheduler_hints": {"group": "`+group+`"}}`)
		if status := w.status(got.body["server"].(map[string]any)["id"].(string)); status != want {
			t.Errorf("the server is %s, want %s", status, want)
		}
	}
}

// left counts what there is of a machine.
func (w *world) left(uid string) int {
	w.Helper()
	found, err := w.hooks.ListResources(w.Context(), resourcesOf(uid))
	if err != nil {
		w.Fatalf("list resources: %v", err)
	}
	return len(found.GetResources())
}
