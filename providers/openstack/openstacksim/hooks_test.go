package openstacksim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

func resourcesOf(uid string) *backendv1alpha1.ListResourcesRequest {
	return &backendv1alpha1.ListResourcesRequest{ClusterUid: cluster, MachineUid: uid}
}

func TestBackendInfo(t *testing.T) {
	w := serve(t, Options{})
	info, err := w.hooks.GetBackendInfo(t.Context(), nil)
	if err != nil || info.GetName() != "openstack" {
		t.Fatalf("%v, %v", info, err)
	}
	for _, operation := range slices.Concat(info.GetCreateOperations(), info.GetDeleteOperations(), []string{"Authenticate", "ListServers", "ListPorts", "CreateFloatingIP"}) {
		if !slices.Contains(info.GetOperations(), operation) {
			t.Errorf("%s is no operation", operation)
		}
	}
	for _, operation := range info.GetOperations() {
		if !slices.Contains(operations(w.cloud.routes), operation) {
			t.Errorf("%s cannot be matched", operation)
		}
	}
}

func TestQuota(t *testing.T) {
	w := open(t, Options{Quota: map[string]int64{state.KindFloatingIP: 0}})
	set := func(limits map[string]int64) error {
		_, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: limits})
		return err
	}
	if err := set(map[string]int64{state.KindVM: 1, state.KindPort: 2, "ram": 600}); err != nil {
		t.Fatalf("set: %v", err)
	}
	if err := set(map[string]int64{"nic": 1}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an unknown kind: %v", err)
	}
	w.machine("a")
	p, err := w.createPort("b")
	if err != nil {
		t.Fatalf("second port: %v", err)
	}
	_, err = w.createServer("b", p.ID)
	const words = "Quota exceeded for instances, ram: Requested 1, 512, but already used 1, 512 of 1, 600 instances, ram"
	if !gophercloud.ResponseCodeIs(err, 403) || !strings.Contains(err.Error(), words) {
		t.Errorf("second server: %v", err)
	}
	if _, err := w.createPort("c"); !gophercloud.ResponseCodeIs(err, 409) || !strings.Contains(err.Error(), "Quota exceeded for resources: ['port'].") {
		t.Errorf("third port: %v", err)
	}
	w.check([]apiCase{
		{"floating IP", "POST", "/networking/v2.0/floatingips", `{"floatingip": {"floating_network_id": "` + w.externalID() + `"}}`, 409, "Quota exceeded for resources: ['floatingip']."},
		{"limits", "GET", "/compute/v2.1/limits", "", 200, `"maxTotalInstances":1`},
		{"quota", "GET", "/networking/v2.0/quotas/" + w.cloud.keystone.ProjectID("demo"), "", 200, `"port":2`},
		{"use", "GET", "/networking/v2.0/quotas/" + w.cloud.keystone.ProjectID("demo") + "/details.json", "", 200, `"port":{"limit":2,"reserved":0,"used":8}`},
		{"change", "PUT", "/networking/v2.0/quotas/" + w.cloud.keystone.ProjectID("demo"), `{"quota": {"port": 9}}`, 403, "rule:update_quota is disallowed by policy"},
	})
	if err := set(map[string]int64{state.KindVM: -1, "ram": -1}); err != nil {
		t.Fatalf("lift: %v", err)
	}
	if _, err := w.createServer("b", p.ID); err != nil {
		t.Errorf("without limit: %v", err)
	}
}

func TestQuotaOfWhatThereIsNot(t *testing.T) {
	if _, err := Open(Options{Quota: map[string]int64{"nic": 1}}); err == nil {
		t.Error("an unknown kind was taken")
	}
}

func TestForeignServers(t *testing.T) {
	w := open(t, Options{})
	before := time.Now().Add(-time.Hour)
	made, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: "orphan", ClusterUid: cluster, MachineUid: "a", Tags: map[string]string{"x": "y"}, CreateTime: timestamppb.New(before),
	}})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	o := ownership.Owner{Cluster: cluster, Namespace: "default", Name: "orphan", UID: "a"}
	w.check([]apiCase{
		{"by tag", "GET", "/compute/v2.1/servers/detail?tags=" + ownership.MachineTag("a"), "", 200, made.GetVm().GetId()},
		{"description", "GET", "/compute/v2.1/servers/detail", "", 200, o.Description()},
		{"port by name", "GET", "/networking/v2.0/ports?name=" + o.PortName(), "", 200, o.MAC(0)},
	})
	if v := made.GetVm(); v.GetTags()["x"] != "y" || len(v.GetTags()) != 1 || !v.GetCreateTime().AsTime().Equal(before) || v.GetMachineUid() != "a" {
		t.Errorf("%v", v)
	}
	plain, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: "plain"}})
	if err != nil || plain.GetVm().GetClusterUid() != "" {
		t.Errorf("a server of nobody: %v, %v", plain, err)
	}
}

// A cloud controller manager with OS_CCM_REGIONAL writes the region into a Node's providerID; hooks
// take both forms.
func TestRegionalProviderIDs(t *testing.T) {
	w := open(t, Options{RegionalIDs: []string{"RegionOne"}})
	_, id := w.machine("a")
	answer, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{
		Id: "openstack://RegionOne/" + id, Change: backendv1alpha1.VMChange_VM_CHANGE_STOP,
	})
	if err != nil || answer.GetVm().GetProviderId() != "openstack://RegionOne/"+id {
		t.Errorf("%v, %v", answer.GetVm(), err)
	}
}

func TestChangesFromOutside(t *testing.T) {
	w := open(t, Options{})
	_, id := w.machine("a")
	change := func(what backendv1alpha1.VMChange) *backendv1alpha1.VM {
		t.Helper()
		answer, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{Id: Options{}.providerID("", id), Change: what, Message: words})
		if err != nil {
			t.Fatalf("change: %v", err)
		}
		return answer.GetVm()
	}
	for _, test := range []struct {
		change backendv1alpha1.VMChange
		state  backendv1alpha1.VMState
		says   string
	}{
		{backendv1alpha1.VMChange_VM_CHANGE_STOP, backendv1alpha1.VMState_VM_STATE_STOPPED, `"status":"SHUTOFF"`},
		{backendv1alpha1.VMChange_VM_CHANGE_START, backendv1alpha1.VMState_VM_STATE_RUNNING, `"status":"ACTIVE"`},
		{backendv1alpha1.VMChange_VM_CHANGE_FAIL, backendv1alpha1.VMState_VM_STATE_STOPPED, words},
		{backendv1alpha1.VMChange_VM_CHANGE_START, backendv1alpha1.VMState_VM_STATE_RUNNING, `"status":"ACTIVE"`},
		{backendv1alpha1.VMChange_VM_CHANGE_DELETE, backendv1alpha1.VMState_VM_STATE_GONE, "could not be found"},
	} {
		if v := change(test.change); v.GetState() != test.state {
			t.Errorf("%v: %v", test.change, v.GetState())
		}
		if got := w.call("GET", "/compute/v2.1/servers/"+id, ""); !strings.Contains(got.raw, test.says) {
			t.Errorf("%v: %s", test.change, got.raw)
		}
	}
	if n := w.left("a"); n != 1 {
		t.Errorf("%d resources are left, want the port", n)
	}
	if _, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{Id: id}); status.Code(err) != codes.NotFound {
		t.Errorf("change what is gone: %v", err)
	}
}

func TestListVMsFollowsServers(t *testing.T) {
	w := open(t, Options{})
	w.machine("a")
	first, err := w.hooks.ListVMs(t.Context(), &backendv1alpha1.ListVMsRequest{})
	if err != nil || len(first.GetVms()) != 1 {
		t.Fatalf("first: %v, %v", first, err)
	}
	next := make(chan *backendv1alpha1.ListVMsResponse, 1)
	go func() {
		answer, _ := w.hooks.ListVMs(t.Context(), &backendv1alpha1.ListVMsRequest{AfterRevision: first.GetVms()[0].GetRevision(), Wait: durationpb.New(time.Minute)})
		next <- answer
	}()
	w.machine("b")
	if answer := <-next; len(answer.GetVms()) != 1 || answer.GetVms()[0].GetMachineUid() != "b" {
		t.Errorf("next: %v", answer)
	}
}

func TestTheLedgerKnowsWhoseCallsAre(t *testing.T) {
	w := open(t, Options{})
	port, server := w.machine("a")
	w.machine("b")
	w.call("GET", "/compute/v2.1/servers/"+server, "")
	w.call("GET", "/networking/v2.0/ports?name="+ownerOf("a").PortName()+"&name="+ownerOf("b").PortName(), "")
	w.call("GET", "/compute/v2.1/servers/detail?name=%5Ename-a%24&changes-since=2000-01-01", "")
	w.call("POST", "/networking/v2.0/floatingips", `{"floatingip": {"floating_network_id": "`+w.externalID()+`", "port_id": "`+port+`", "description": "`+ownerOf("a").Description()+`"}}`)
	w.call("GET", "/networking/v2.0/floatingips?description="+strings.ReplaceAll(ownerOf("a").Description(), " ", "+"), "")
	w.call("DELETE", "/compute/v2.1/servers/"+server, "")
	w.call("DELETE", "/networking/v2.0/ports/"+port, "")
	w.call("DELETE", "/networking/v2.0/ports/"+port, "")
	for machine, want := range map[string][]string{
		"a": {"CreatePort", "CreateServer", "GetServer", "ListPorts", "ListServers", "CreateFloatingIP", "ListFloatingIPs", "DeleteServer", "DeletePort", "DeletePort"},
		"b": {"CreatePort", "CreateServer", "ListPorts"},
	} {
		var got []string
		for _, one := range w.calls("", machine) {
			got = append(got, one.GetOperation())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", machine, got, want)
		}
	}
	last := w.calls("DeletePort", "a")[1]
	if last.GetDone() || last.GetCode() != int32(codes.NotFound) || !strings.Contains(last.GetMessage(), "could not be found") {
		t.Errorf("a delete of what is gone: %v", last)
	}
	totals, err := w.hooks.GetTotals(t.Context(), &backendv1alpha1.GetTotalsRequest{ClusterUid: cluster})
	if err != nil || totals.GetCalls()["CreateServer"] != 2 || totals.GetVmsPeak() != 2 || totals.GetResourcesLeft() != 3 {
		t.Errorf("totals: %v, %v", totals, err)
	}
}
