package driver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// A proxy that does not find the services, or takes no request, says nothing about machines and
// their specs.
func TestNothingIsGoneBehindAProxyThatIsAstray(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"it finds nothing":    http.NotFound,
		"it takes no request": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadRequest) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{})
			w.created("one", nil)
			before := w.left()
			end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
				answer(rw, r)
				return true
			})
			_, err := w.delete("one")
			w.refused("a delete", err, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN)
			_, err = w.status("one")
			w.refused("a look", err, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN)
			_, err = w.create("two", nil)
			w.refused("a create", err, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN)
			end()
			if diff := cmp.Diff(before, w.left()); diff != "" {
				t.Errorf("after all that (-before +after):\n%s", diff)
			}
			w.gone("one")
		})
	}
}

// A proxy that answers 400 for Nova may have handed the request on: what there may be is handed
// over, and waited for.
func TestAServerBehindAProxyThatRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{}).another(Options{CreateSettle: time.Hour})
	end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/servers") {
			return false
		}
		rw.WriteHeader(http.StatusBadRequest)
		return true
	})
	_, err := w.create("one", nil)
	w.refused("a create", err, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN)
	_, err = w.create("one", nil)
	w.refused("the next create", err, driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING)
	end()
	w.leavesNothing("one")
}

// A Neutron without routers has no floating IPs, and does not know the path either.
func TestANeutronWithoutRouters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/floatingips") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(rw, `{"NeutronError": {"type": "HTTPNotFound", "message": "The resource could not be found.", "detail": ""}}`)
		return true
	})
	w.created("one", nil)
	if listed := w.list(); len(listed) != 1 {
		t.Errorf("listed are %v", listed)
	}
	w.leavesNothing("one")
}

// A server that has come since the list of its machine's was asked for is waited for: another one
// is not made.
func TestAServerThatHasJustCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	made := w.created("one", nil)
	end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		ofMachines := strings.HasSuffix(r.URL.Path, "/servers/detail") && r.URL.Query().Has("tags-any")
		if !ofMachines && !strings.HasSuffix(r.URL.Path, "/ports") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"servers": [], "ports": []}`)
		return true
	})
	_, err := w.create("one", nil)
	w.refused("a create while lists are behind", err, driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING)
	if got := status.Convert(err).Message(); got != "The machine's server has just come." {
		t.Errorf("it says %q", got)
	}
	end()
	if m, err := w.create("one", nil); err != nil || m.GetProviderId() != made.GetProviderId() || w.left()["vm"] != 1 {
		t.Errorf("the machine is %v, %v, and left are %v", m, err, w.left())
	}
}

// A list of ports that stays behind hides no machine: Nova knows its server.
func TestAPortThatNoListShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	made := w.created("one", nil)
	end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/ports") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"ports": []}`)
		return true
	})
	if m, err := w.create("one", nil); err != nil || m.GetProviderId() != made.GetProviderId() {
		t.Errorf("the machine is %v, %v, want that of %s", m, err, made.GetProviderId())
	}
	end()
	if left := w.left()["vm"]; left != 1 {
		t.Errorf("there are %d servers, want 1", left)
	}
}

// A port of the spec's that another server has is named: it may have it for ever.
func TestAPortOfTheSpecsThatIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	w.created("one", nil)
	id := w.port()
	_, err := w.settled("two", map[string]any{"ports": []map[string]any{{"id": id}}})
	w.refused("a create on a port that is taken", err, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE)
	if !strings.Contains(err.Error(), "Port "+id+" is still in use.") {
		t.Errorf("it says %v", err)
	}
}

// A server for which no host has room is a create that was refused, though Nova says so only later:
// the machine gets a server of the same port and floating IP once there is room.
func TestNoRoomIsARefusedCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{HostsPerZone: 1})
	w.apart("apart")
	fields := map[string]any{"serverGroup": "apart", "floatingIpPool": "ext-net"}
	w.created("one", fields)
	m, err := w.create("two", fields)
	if err != nil || m.GetProviderId() != "" || m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_CREATING {
		t.Fatalf("what Nova has taken, and not placed: %v, %v", m, err)
	}
	m, err = w.status("two")
	if err != nil || m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || m.GetReason() != "CapacityUnavailable" || m.GetProviderId() != "" {
		t.Errorf("what Nova found no host for: %v, %v", m, err)
	}
	for range 2 {
		_, err = w.settled("two", fields)
		w.refused("a create without room", err, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE)
		if !strings.Contains(status.Convert(err).Message(), "No valid host was found.") {
			t.Errorf("in whose words? %v", err)
		}
		if m, err = w.settled("two", fields); err != nil || m.GetProviderId() != "" {
			t.Errorf("asked again: %v, %v", m, err)
		}
	}
	w.gone("one")
	_, err = w.settled("two", fields)
	w.refused("the last create without room", err, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE)
	w.created("two", fields)
	if m, err = w.status("two"); err != nil || m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_RUNNING || m.GetProviderId() == "" {
		t.Errorf("with room: %v, %v", m, err)
	}
	if calls := w.calls(); calls["DeletePort"] != 1 || calls["CreateFloatingIP"] != 2 {
		t.Errorf("each try cost more than a server: %v", calls)
	}
	w.leavesNothing("two")
}

// apart makes a server group whose servers share no host.
func (w *world) apart(name string) {
	w.Helper()
	if err := servergroups.Create(w.Context(), w.session("2.64").Compute, servergroups.CreateOpts{Name: name, Policy: "anti-affinity"}).Err; err != nil {
		w.Fatal(err)
	}
}

// session is one of the world's account, for what the driver does not ask for.
func (w *world) session(computeAPIVersion string) *session.Session {
	w.Helper()
	account, err := spec.ReadAccount(w.spec(nil), w.provider(nil).GetSecrets(), spec.Environment{})
	if err != nil {
		w.Fatal(err)
	}
	in, err := w.sessions.Open(w.Context(), account, computeAPIVersion)
	if err != nil {
		w.Fatal(err)
	}
	return in
}

// Nothing that a spec can ask for needs a newer Nova; a microversion that is named is refused by
// name.
func TestOldNovas(t *testing.T) {
	t.Parallel()
	refused := func(w *world, name string, more map[string]any, says string) {
		_, err := w.create(name, more)
		w.refused("a microversion that it does not have", err, driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID)
		if fields := sdk.FieldViolations(err); len(fields) != 1 || fields[0].GetField() != "computeAPIVersion" || !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v", err)
		}
	}
	for _, newest := range []int{52, 60, 65} {
		w := newWorld(t, openstacksim.Options{MaxComputeAPIVersion: newest})
		w.created("plain", map[string]any{"rootDiskSizeGB": 20, "rootDiskVolumeType": "ssd", "floatingIpPool": "ext-net", "availabilityZone": "nova"})
		refused(w, "newer", map[string]any{"computeAPIVersion": "2.79"}, fmt.Sprintf("maximum is 2.%d", newest))
		w.leavesNothing("plain")
	}
	refused(newWorld(t, openstacksim.Options{MaxComputeAPIVersion: 42}), "too old", nil, "maximum is 2.42")
}

// Subnets of one name in several networks are told apart by their network.
func TestSubnetsAreOfTheirNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	_, err := w.create("one", map[string]any{"network": "kubermatic-92r62cx8j6", "subnet": "demo-subnet"})
	w.refused("a subnet of another network", err, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND)
	w.created("two", map[string]any{"subnet": "demo-subnet"})
}
