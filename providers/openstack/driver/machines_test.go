package driver

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// A machine of each kind comes, with all that its spec asks for, and goes, with nothing left.
func TestWhatAMachineIsMadeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		more map[string]any
		want map[string]int
	}{
		{"a server and its port", nil, map[string]int{"vm": 1, "port": 1}},
		{"in a subnet", map[string]any{"network": "", "subnet": "demo-subnet"}, map[string]int{"vm": 1, "port": 1}},
		{"with a floating IP", map[string]any{"floatingIpPool": "ext-net"}, map[string]int{"vm": 1, "port": 1, "floatingip": 1}},
		{"with a root disk", map[string]any{"rootDiskSizeGB": 20}, map[string]int{"vm": 1, "port": 1, "volume": 1}},
		{"with disks of each kind", map[string]any{"flavor": "m1.ephemeral", "rootDiskSizeGB": 20, "rootDiskVolumeType": "ssd", "rootDiskAvailabilityZone": "nova", "additionalBlockDevices": []map[string]any{
			{"name": "data", "sizeGiB": 10, "storage": map[string]any{"volume": map[string]any{"type": "ssd"}}},
			{"name": "cache", "sizeGiB": 5, "storage": map[string]any{"type": "Local"}},
		}}, map[string]int{"vm": 1, "port": 1, "volume": 2}},
		{"with a disk beside the flavor's", map[string]any{"additionalBlockDevices": []map[string]any{{"name": "data", "sizeGiB": 10}}},
			map[string]int{"vm": 1, "port": 1, "volume": 1}},
		{"in two networks", map[string]any{"network": "", "networks": []string{"demo-net", "kubermatic-92r62cx8j6"}}, map[string]int{"vm": 1, "port": 2}},
		{"in a network of another project", map[string]any{"network": "shared"}, map[string]int{"vm": 1, "port": 1}},
		{"with a trunk", map[string]any{"network": "", "ports": []map[string]any{{"network": "demo-net", "trunk": true}}},
			map[string]int{"vm": 1, "port": 1, "trunk": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{})
			first := w.created("one", c.more)
			again := w.created("one", c.more)
			if first.GetProviderId() == "" || first.GetProviderId() != again.GetProviderId() {
				t.Errorf("created %q, and again %q", first.GetProviderId(), again.GetProviderId())
			}
			if diff := cmp.Diff(c.want, w.left()); diff != "" {
				t.Errorf("it is made of (-want +got):\n%s", diff)
			}
			w.leavesNothing("one")
		})
	}
}

// A hundred machines are asked for at once. Each costs a call for each thing that it is made of,
// and a share of a few lists.
func TestCallsOfManyMachines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		spec     map[string]any
		up, down int64
	}{
		{"without floating IP", nil, 4, 3},
		{"with floating IP", map[string]any{"floatingIpPool": "ext-net"}, 5, 4},
		{"on a volume", map[string]any{"rootDiskSizeGB": 20}, 5, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, openstacksim.Options{})
			w.Driver = New(session.NewPool(session.Options{}), Options{Version: "test"})
			const machines = 100
			var names []string
			for i := range machines {
				names = append(names, "m"+string(rune('a'+i/26))+string(rune('a'+i%26)))
			}
			of := func(what string, do func(name string)) int64 {
				before := sum(w.calls())
				var wait sync.WaitGroup
				for _, name := range names {
					wait.Go(func() { do(name) })
				}
				wait.Wait()
				calls := sum(w.calls()) - before
				t.Logf("%s: %.2f calls for each of %d machines", what, float64(calls)/machines, machines)
				return calls
			}
			if got := of("create", func(name string) { _, err := w.settled(name, c.spec); check(t, err) }); got > c.up*machines {
				t.Errorf("%d machines were made by %d calls, more than %d each: %v", machines, got, c.up, w.calls())
			}
			if got := of("delete", w.gone); got > c.down*machines {
				t.Errorf("%d machines were deleted by %d calls, more than %d each: %v", machines, got, c.down, w.calls())
			}
			if logins := w.calls()["Authenticate"]; logins != 1 {
				t.Errorf("%d logins", logins)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func sum(calls map[string]int64) (all int64) {
	for n := range maps.Values(calls) {
		all += n
	}
	return all
}

// The answer of each call that makes something is lost in turn: the next create goes on, and there
// is one of each.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	spec := map[string]any{"floatingIpPool": "ext-net"}
	for _, operation := range []string{"CreatePort", "CreateFloatingIP", "CreateServer"} {
		t.Run(operation, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{})
			w.inject(&backendv1alpha1.Fault{
				Match: &backendv1alpha1.FaultMatch{Operation: operation}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST, Times: 1,
			})
			_, err := w.create("one", spec)
			w.refused("a create whose answer was lost", err, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN)
			w.created("one", spec)
			if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1, "floatingip": 1}, w.left()); diff != "" {
				t.Errorf("there are (-want +got):\n%s", diff)
			}
			w.leavesNothing("one")
		})
	}
}

// A uid that has had its server gets no other.
func TestDeletedServerIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	first := w.created("one", nil)
	w.gone("one")
	again := w.created("one", nil)
	if again.GetProviderId() != first.GetProviderId() || again.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
		t.Errorf("after it was deleted: %v", again)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	// Another machine of that name is another machine.
	other := ref("one")
	other.Uid = "another"
	m, err := w.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{Meta: meta(), Machine: other, Provider: w.provider(nil)})
	if err != nil || m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
		t.Errorf("another machine of the name: %v, %v", m, err)
	}
}

// Machines that are asked for at once are told apart by what they have had, whatever their names
// have in common.
func TestTombstonesOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	had := map[string]bool{"set-one": true, "set-two": true, "other": true, "set": false, "set-three": false, "set-one-more": false}
	for name, before := range had {
		if before {
			w.created(name, nil)
			w.gone(name)
		}
	}
	var wait sync.WaitGroup
	for name, before := range had {
		wait.Go(func() {
			m, err := w.create(name, nil)
			if failed := m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED; err != nil || failed != before {
				t.Errorf("%s, which had a server: %t: %v, %v", name, before, m, err)
			}
		})
	}
	wait.Wait()
	if diff := cmp.Diff(map[string]int{"vm": 3, "port": 3}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
}

// A process that knows nothing finds a server that has been there for long by its port.
func TestOldServersAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	before := w.created("one", nil)
	later := func() time.Time { return time.Now().Add(time.Hour) }
	w.Driver = New(session.NewPool(session.Options{}), Options{Version: "test", CreateSettle: settle, Clock: later})
	again, err := w.create("one", nil)
	if err != nil || again.GetProviderId() != before.GetProviderId() {
		t.Errorf("created again: %v, %v", again, err)
	}
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
}

// What others made is never deleted: a port that the spec names, and all that carries no marks of
// this machine.
func TestForeignThingsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	w.created("other", nil)
	before := w.left()
	w.created("one", map[string]any{"floatingIpPool": "ext-net"})
	w.gone("one")
	if diff := cmp.Diff(before, w.left()); diff != "" {
		t.Errorf("after another machine was deleted (-before +after):\n%s", diff)
	}
	w.gone("never")
	if diff := cmp.Diff(before, w.left()); diff != "" {
		t.Errorf("after nothing was deleted (-before +after):\n%s", diff)
	}
}

// What a create that died has left is listed as failed, under the machine's name, and goes with the
// next delete.
func TestLeftoversAreListedAndDeleted(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"CreateFloatingIP", "CreateServer"} {
		t.Run("before "+dies, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{})
			w.inject(&backendv1alpha1.Fault{
				Match: &backendv1alpha1.FaultMatch{Operation: dies}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Times: 1,
				Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
			})
			_, err := w.create("one", map[string]any{"floatingIpPool": "ext-net"})
			w.refused("a create that the cloud fails", err, driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL)
			listed := w.list()
			if len(listed) != 1 || listed[0].GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || listed[0].GetProviderId() != "" ||
				listed[0].GetRef().GetName() != "one" {
				t.Errorf("listed are %v", listed)
			}
			w.leavesNothing("one")
		})
	}
}

// What users of Cluster API give a port and a server arrives: tags of ports after their creation,
// also of a port whose create was broken off before them.
func TestTagsOfPortsAndKeyPairs(t *testing.T) {
	t.Parallel()
	world := openstacksim.DefaultWorld()
	world.KeyPairs = []string{"ours"}
	w := newWorld(t, openstacksim.Options{World: world})
	more := map[string]any{"network": "", "sshKeyName": "ours", "ports": []map[string]any{{"network": "demo-net", "tags": []string{"billing", "team-a"}}}}
	w.inject(&backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: "ReplacePortTags"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Times: 1,
		Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
	})
	_, err := w.create("one", more)
	w.refused("a create whose port gets no tags", err, driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL)
	m := w.created("one", more)
	in := w.session("")
	pages, err := ports.List(in.Network, ports.ListOpts{ProjectID: in.ProjectID, Tags: "billing,team-a"}).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found, err := ports.ExtractPorts(pages); err != nil || len(found) != 1 || found[0].Name != "kube-system/one/uid-of-one" {
		t.Errorf("ports with the tags: %v, %v", found, err)
	}
	server, err := servers.Get(t.Context(), in.Compute, serverIDOf(&driverv1alpha1.DeleteMachineRequest{ProviderId: m.GetProviderId()})).Extract()
	if err != nil || server.KeyName != "ours" {
		t.Errorf("the server is %+v, %v", server, err)
	}
	_, err = w.create("two", map[string]any{"sshKeyName": "theirs"})
	w.refused("a key pair that there is not", err, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND)
	w.gone("one")
}

// list returns all machines of the cluster, page by page.
func (w *world) list() (all []*driverv1alpha1.Machine) {
	w.Helper()
	for token := ""; ; {
		page, err := w.ListMachines(w.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta(), Provider: w.provider(nil), PageToken: token})
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, page.GetMachines()...)
		if token = page.GetNextPageToken(); token == "" {
			return all
		}
	}
}

// A server that somebody deletes takes its machine with it, and leaves the port for us.
func TestServerDeletedBySomebodyElseIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	m := w.created("one", nil)
	if _, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{Id: m.GetProviderId(), Change: backendv1alpha1.VMChange_VM_CHANGE_DELETE}); err != nil {
		t.Fatal(err)
	}
	now, err := w.status("one")
	if err != nil || now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || now.GetProviderId() != "" {
		t.Errorf("its status is %v, %v", now, err)
	}
	if again := w.created("one", nil); again.GetProviderId() != m.GetProviderId() {
		t.Errorf("it got another server, %s", again.GetProviderId())
	}
	w.gone("one")
	_, err = w.status("one")
	w.refused("its status once all is gone", err, driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND)
}

// What the spec names and the cloud has not is found before anything is made, by the name of its
// field.
func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for field, more := range map[string]map[string]any{
		"flavor":            {"flavor": "m9.none"},
		"image":             {"image": "none"},
		"network":           {"network": "none"},
		"networks[1]":       {"network": "", "networks": []string{"demo-net", "none"}},
		"ports[1].network":  {"ports": []map[string]any{{"trunk": true}, {"network": "none"}}},
		"subnet":            {"subnet": "none"},
		"securityGroups[0]": {"securityGroups": []string{"none"}},
		"serverGroup":       {"serverGroup": "none"},
		"floatingIpPool":    {"floatingIpPool": "none"},
	} {
		t.Run(field, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{})
			_, err := w.create("one", more)
			w.refused("a create", err, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND)
			found := violations(err)
			if len(found) != 1 || found[0].GetField() != field {
				t.Errorf("found %v in %v", found, err)
			}
			answer, err := w.ValidateProviderSpec(t.Context(), &driverv1alpha1.ValidateProviderSpecRequest{Meta: meta(), Provider: w.provider(more), Online: true})
			if err != nil || len(answer.GetViolations()) != 1 || answer.GetViolations()[0].GetField() != field {
				t.Errorf("validated: %v, %v", answer, err)
			}
			if left := w.left(); field != "floatingIpPool" && len(left) > 0 {
				t.Errorf("it made %v", left)
			}
		})
	}
}

func TestInstanceTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	answer, err := w.GetInstanceTemplate(t.Context(), &driverv1alpha1.GetInstanceTemplateRequest{Meta: meta(), Provider: w.provider(map[string]any{
		"flavor": "m1.large", "availabilityZone": "nova",
	})})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpu": "4", "memory": "8192Mi", "ephemeral-storage": "80Gi", "pods": "110"}
	if diff := cmp.Diff(want, answer.GetTemplate().GetCapacity()); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if zone := answer.GetTemplate().GetLabels()["topology.kubernetes.io/zone"]; zone != "nova" {
		t.Errorf("zone %q", zone)
	}
}

// 2,000 machines are listed by a few calls, page by page, and of what was read nothing is kept: 50
// passes leave no more than 10 do. The simulator's heap is in this process, too; its ledger grows
// by half a KiB with each call.
func TestManyMachinesAreListed(t *testing.T) {
	const machines = 2000
	passes := 50
	if raced() {
		passes = 5 // JSON is several times as slow there
	}
	w := newWorld(t, openstacksim.Options{})
	w.populate(machines)
	took, calls, kept := make([]time.Duration, passes), make([]int64, passes), make([]int64, passes)
	before := heap()
	for n := range passes {
		made, begin := sum(w.calls()), time.Now()
		if seen := w.listed(); seen != machines {
			t.Errorf("%d machines are listed", seen)
		}
		took[n], calls[n] = time.Since(begin), sum(w.calls())-made
		kept[n] = heap() - before
	}
	warm, last := passes/5-1, passes-1
	if slices.Max(calls) > 12 {
		t.Errorf("the passes take %v calls: %v", calls, w.calls())
	}
	// The least since the passes are warm: what tests before this one have left may still go.
	if limit := slices.Min(kept[warm:]) + 1<<20; kept[last] > limit {
		t.Errorf("%d bytes are kept after %d passes, more than %d: %v", kept[last], passes, limit, kept)
	}
	t.Logf("%d calls in the first pass, %d in the last; %d KiB are kept after the first, %d after %d, %d after %d", calls[0], calls[last],
		kept[0]>>10, kept[warm]>>10, warm+1, kept[last]>>10, passes)
	slices.Sort(took)
	t.Logf("a pass takes %s (median), %s at most", took[passes/2].Round(time.Millisecond), took[last].Round(time.Millisecond))
}

// populate makes servers, each with its port, as if the driver had.
func (w *world) populate(machines int) {
	w.Helper()
	for i := range machines {
		if _, err := w.hooks.CreateForeignVM(w.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
			Name: "m", ClusterUid: clusterUID, MachineUid: fmt.Sprintf("uid-of-m-%d", i),
		}}); err != nil {
			w.Fatal(err)
		}
	}
}

// listed counts the machines of all pages.
func (w *world) listed() int {
	w.Helper()
	seen := map[string]bool{}
	for _, m := range w.list() {
		seen[m.GetRef().GetUid()] = true
	}
	return len(seen)
}

// raced says whether the race detector is in this executable.
func raced() bool {
	info, known := debug.ReadBuildInfo()
	return known && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// heap is how many bytes this process uses once what is garbage is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools had at the first one
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return int64(now.HeapAlloc)
}
