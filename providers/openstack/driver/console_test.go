package driver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

func (w *world) console(name string) (string, error) {
	output, err := w.GetConsoleOutput(w.Context(), &driverv1alpha1.GetConsoleOutputRequest{Meta: meta(), Machine: ref(name), Provider: w.provider(nil)})
	return string(output), err
}

// refuseConsoles has Nova answer each question for a console so.
func (w *world) refuseConsoles(code int, body string, alsoServers bool) {
	answer := func(out http.ResponseWriter, r *http.Request) bool {
		isAction := strings.HasSuffix(r.URL.Path, "/action")
		isServer := r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/servers/") && !strings.HasSuffix(r.URL.Path, "/detail")
		if !isAction && (!isServer || !alsoServers) {
			return false
		}
		out.Header().Set("Content-Type", "application/json; charset=UTF-8")
		out.WriteHeader(code)
		_, _ = io.WriteString(out, body)
		return true
	}
	w.before.Store(&answer)
}

func TestConsole(t *testing.T) {
	t.Parallel()
	const gone = `{"itemNotFound": {"code": 404, "message": "Instance 1 could not be found."}}`
	for _, c := range []struct {
		name        string
		code        int // 0: Nova answers
		body        string
		alsoServers bool
		want        string
		reason      driverv1alpha1.ErrorReason
	}{
		{"what the server has printed", 0, "", false, "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE", 0},
		{"a server that was on no host yet", 409, `{"conflictingRequest": {"code": 409, "message": "Instance 1 is not ready"}}`, false, "", 0},
		{
			"a hypervisor that keeps none", 404, `{"itemNotFound": {"code": 404, "message": "Guest does not have a console available."}}`, false,
			"Guest does not have a console available.", driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
		},
		{"a server that went in between", 404, gone, true, "The project has no server of this machine.", driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND},
		{
			"a driver of Nova's that cannot", 501, `{"notImplemented": {"code": 501, "message": "The requested functionality is not supported."}}`, false,
			"The requested functionality is not supported.", driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL,
		},
		{
			"a user that may not", 403, `{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:os-console-output to be performed."}}`, false,
			"Policy doesn't allow os_compute_api:os-console-output to be performed.", driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{})
			w.created("one", nil)
			if c.code != 0 {
				w.refuseConsoles(c.code, c.body, c.alsoServers)
			}
			output, err := w.console("one")
			if err != nil {
				output = status.Convert(err).Message()
			}
			reason := contract.ParseReason(contract.ErrorInfo(status.Convert(err)).GetReason())
			if output != c.want || reason != c.reason {
				t.Errorf("the console is %q (%s), want %q (%s)", output, reason, c.want, c.reason)
			}
		})
	}
}

func TestConsoleOfNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	_, err := w.console("nobody")
	if reason := contract.ErrorInfo(status.Convert(err)).GetReason(); reason != "MACHINE_NOT_FOUND" {
		t.Errorf("the console of nobody: %v", err)
	}
}
