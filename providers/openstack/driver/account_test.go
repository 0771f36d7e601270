package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

const (
	quotaExceeded  = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
	accountChanged = driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED
)

// full has the next call of an operation meet a quota that is used up.
func (w *world) full(operation string) {
	w.Helper()
	w.inject(&backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: operation}, Times: 1, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
		Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_QUOTA},
	})
}

// handed is the state that an error hands over; empty for none.
func handed(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if partial, ok := detail.(*driverv1alpha1.PartialState); ok {
			return string(partial.GetLastKnownState())
		}
	}
	return ""
}

// handedOver is what an error says of where a machine is. It does not hold the project's id, which
// may have come as a secret.
func (w *world) handedOver(m *driverv1alpha1.Machine) string {
	w.Helper()
	var where location
	if err := json.Unmarshal(m.GetLastKnownState(), &where); err != nil || where.Project == "" {
		w.Fatalf("the state %s: %v", m.GetLastKnownState(), err)
	}
	state := string(where.handedOver())
	if strings.Contains(state, where.Project) {
		w.Errorf("an error would hold the project's id: %s", state)
	}
	return state
}

// A create that failed half-way says where: another project is not asked for the rest, and does not
// look as if there was nothing.
func TestACreateThatFailedHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	other := map[string]any{"username": "alt", "projectName": "alt", "network": "alt-net"}
	demo := w.handedOver(w.created("whole", nil))

	w.full("CreateServer")
	_, err := w.create("half", nil)
	w.refused("a create whose server was refused", err, quotaExceeded)
	if got := handed(err); got != demo {
		t.Errorf("it hands over %q, want %q", got, demo)
	}
	_, err = w.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{
		Meta: meta(), Machine: ref("half"), Provider: w.provider(other), LastKnownState: []byte(demo),
	})
	w.refused("a create of the rest in another project", err, accountChanged)
	if got := handed(err); got != demo {
		t.Errorf("it hands over %q, want %q", got, demo)
	}
	_, err = w.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{
		Meta: meta(), Machine: ref("half"), Provider: w.provider(other), LastKnownState: []byte(demo),
	})
	w.refused("a delete in another project", err, accountChanged)
	_, err = w.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{
		Meta: meta(), Machine: ref("half"), Provider: w.provider(nil), LastKnownState: []byte(demo),
	})
	if err != nil {
		t.Errorf("a create of the rest in the same project: %v", err)
	}

	w.full("CreateServer")
	_, err = w.create("other half", nil)
	w.refused("another create whose server was refused", err, quotaExceeded)
	later := New(w.sessions, w.options)
	w.full("CreateServer")
	_, err = later.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{Meta: meta(), Machine: ref("other half"), Provider: w.provider(nil)})
	if got := handed(err); got != demo {
		t.Errorf("a process that has found the port says %v, and hands over %q, want %q", err, got, demo)
	}
}

// A project in which nothing was made does not keep the machine.
func TestACreateThatMadeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	w.full("CreatePort")
	_, err := w.create("portless", nil)
	w.refused("a create whose port was refused", err, quotaExceeded)
	if got := handed(err); got != "" {
		t.Errorf("it hands over %q", got)
	}
	w.created("portless", map[string]any{"username": "alt", "projectName": "alt", "network": "alt-net"})

	w.full("CreateServer")
	_, err = w.settled("guest", map[string]any{"ports": []map[string]any{{"id": w.port()}}})
	w.refused("a create whose server was refused, on a port of the spec's", err, quotaExceeded)
	if got := handed(err); got != "" {
		t.Errorf("it hands over %q", got)
	}
}

// Who owns a network is shown what other projects have on it, and an administrator all floating
// IPs: those are other machines' business, which may run well on servers that he is not shown.
func TestAnotherProjectsMachinesAreNotListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	one := w.created("one", nil)
	owner := ownership.Owner{Cluster: clusterUID, Namespace: "kube-system", Name: "theirs", UID: "uid-of-theirs"}
	w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.URL.Query().Has("project_id") {
			return false
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/ports"):
			_, _ = fmt.Fprintf(rw, `{"ports": [{"id": "p", "name": %q, "description": %q, "device_id": "s"}]}`, owner.PortName(), ownership.ClusterDescription(clusterUID))
		case strings.HasSuffix(r.URL.Path, "/floatingips"):
			_, _ = fmt.Fprintf(rw, `{"floatingips": [{"id": "f", "description": %q}]}`, owner.Description())
		default:
			return false
		}
		return true
	})
	if listed := w.list(); len(listed) != 1 || listed[0].GetProviderId() != one.GetProviderId() {
		t.Errorf("listed are %v", listed)
	}
	_, err := w.status("theirs")
	w.refused("the status of another project's machine", err, driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND)
}

// port returns the id of a port that is there.
func (w *world) port() string {
	w.Helper()
	there, err := w.hooks.ListResources(w.Context(), &backendv1alpha1.ListResourcesRequest{ClusterUid: clusterUID})
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range there.GetResources() {
		if r.GetKind() == "port" {
			return r.GetId()
		}
	}
	w.Fatal("there is no port")
	return ""
}

// A create ends before its caller stops waiting, and says where the machine is.
func TestACreateThatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	demo := w.handedOver(w.created("whole", nil))
	w.inject(&backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: "CreateServer"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY, Times: 1,
		Latency: &backendv1alpha1.FaultLatency{Min: durationpb.New(time.Minute)},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err := w.CreateMachine(ctx, &driverv1alpha1.CreateMachineRequest{Meta: meta(), Machine: ref("slow"), Provider: w.provider(nil)})
	if ctx.Err() != nil {
		t.Error("nobody waits for its answer any more")
	}
	w.refused("a create whose server takes a minute", err, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN)
	if got := handed(err); got != demo {
		t.Errorf("it hands over %q, want %q", got, demo)
	}
}
