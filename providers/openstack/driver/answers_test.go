package driver

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// A proxy that does not find the services, or takes no request, says nothing about machines and
// their specs.
func TestNothingIsGoneBehindAProxyThatIsAstray(t *testing.T) {
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
	w.gone("one")
	if left := w.left(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// A Neutron without routers has no floating IPs, and does not know the path either.
func TestANeutronWithoutRouters(t *testing.T) {
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
	w.gone("one")
	if left := w.left(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// A server that has come since the list of its machine's was asked for is waited for: another one
// is not made.
func TestAServerThatHasJustCome(t *testing.T) {
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

// A port of the spec's that another server has is named: it may have it for ever.
func TestAPortOfTheSpecsThatIsTaken(t *testing.T) {
	w := newWorld(t, openstacksim.Options{})
	w.created("one", nil)
	id := w.port()
	_, err := w.settled("two", map[string]any{"ports": []map[string]any{{"id": id}}})
	w.refused("a create on a port that is taken", err, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE)
	if !strings.Contains(err.Error(), "Port "+id+" is still in use.") {
		t.Errorf("it says %v", err)
	}
}
