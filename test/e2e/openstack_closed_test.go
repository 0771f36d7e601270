package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	services "github.com/millwright-dev/millwright/test/openstack/deployment"
	"github.com/millwright-dev/millwright/test/tier"
)

// onSimulator skips a test that real services cannot be brought to.
func onSimulator(t *testing.T) {
	t.Helper()
	if os.Getenv(services.Variable) != "" {
		t.Skip("this takes the simulator")
	}
}

// A server that ran and is in ERROR after a resize that failed is shown with Nova's words and
// counts as unavailable. It is not replaced, and goes on by itself once it is up again.
func TestLIFE8_OpenStackServerBreaksAfterItRan(t *testing.T) {
	tier.Long(t, "the fake cloud's test shows the same")
	t.Parallel()
	const machines = 3
	const novasWords = "Resize error: not able to execute ssh command: Unexpected error while running command."
	onSimulator(t)
	u := newOpenStackUser(t)
	u.apply(u.onMetaKube("resized", machines, ""))
	u.awaitRunning(machines)
	before := u.uids()
	breaks := u.machines()[0]
	id := strings.TrimPrefix(*breaks.Spec.ProviderID, "openstack:///")
	u.inject(&backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: "ResizeServer"}, Times: 1,
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS, Error: &backendv1alpha1.FaultError{Message: novasWords},
	})
	if err := servers.Resize(t.Context(), u.compute, id, servers.ResizeOpts{FlavorRef: u.flavorID("m1.medium")}).ExtractErr(); err != nil {
		t.Fatalf("resize a server: %v", err)
	}
	eventually(t, "the broken to be shown", func(context.Context) error {
		m, found := u.find(breaks.Name)
		if !found || !saysWhy(m, clusterv1alpha1.ReasonInstanceStopped, novasWords) {
			return fmt.Errorf("found: %t%s", found, words(m.Status.Conditions))
		}
		if m.Status.Phase != clusterv1alpha1.MachinePhaseRunning {
			return fmt.Errorf("its phase is %s", m.Status.Phase)
		}
		return nil
	})
	u.kubectl("wait", "machinedeployment/resized", "--for=jsonpath={.status.availableReplicas}="+fmt.Sprint(machines-1), "--timeout=120s")
	if err := servers.Reboot(t.Context(), u.compute, id, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr(); err != nil {
		t.Fatalf("reboot the server: %v", err)
	}
	u.kubectl("wait", "machine/"+breaks.Name, "--for=condition=Ready", "--timeout=120s")
	u.awaitRunning(machines)
	if after := u.uids(); !slices.Equal(before, after) {
		t.Errorf("machines were replaced: uids %v became %v", before, after)
	}
	u.checkOneVMEach()
}

// A 400 of a proxy says nothing of the spec: the Machine is not Failed, and goes on once the proxy
// takes requests again.
func TestSAFE7_OpenStackProxyRefusesRequests(t *testing.T) {
	tier.Long(t, "the fake cloud's test shows how a machine recovers")
	t.Parallel()
	onSimulator(t)
	proxy := newRefusingProxy(t)
	u := newOpenStackUser(t)
	as := u.CloudEnvironment()
	at := proxy.standBefore(t, as["OS_AUTH_URL"])
	u.apply(strings.Replace(u.onMetaKube("proxied", 1, ""), "          cloudProviderSpec:\n", `          cloudProviderSpec:
            identityEndpoint: `+at+`
            username: `+as["OS_USERNAME"]+`
            password: `+as["OS_PASSWORD"]+`
            domainName: Default
            tenantName: `+as["OS_PROJECT_NAME"]+`
`, 1))
	u.awaitUnknownOutcome("400 Bad Request")
	before := u.uids()
	proxy.refuses.Store(false)
	u.awaitRunning(1)
	if after := u.uids(); !slices.Equal(before, after) {
		t.Errorf("the machine was replaced: uids %v became %v", before, after)
	}
	u.checkOneVMEach()
}

// refusingProxy stands before all services of a cloud. While it refuses it takes no port: it
// answers 400, and not a word more.
type refusingProxy struct {
	*httptest.Server
	refuses atomic.Bool
	onward  atomic.Pointer[httputil.ReverseProxy]
}

// newRefusingProxy starts one that serves until the test and all clean-up that is registered later
// have ended.
func newRefusingProxy(t *testing.T) *refusingProxy {
	p := &refusingProxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.refuses.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/ports") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.onward.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// standBefore has it refuse, until the test ends, what is sent to the cloud that Keystone is at. It
// returns where Keystone is behind it; who comes that way is told to come to the other services
// that way.
func (p *refusingProxy) standBefore(t *testing.T, keystone string) string {
	t.Helper()
	at, err := url.Parse(keystone)
	if err != nil {
		t.Fatal(err)
	}
	p.onward.Store(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host
		r.Out.Host = r.In.Host
	}})
	p.refuses.Store(true)
	t.Cleanup(func() { p.refuses.Store(false) })
	return p.URL + at.Path
}
