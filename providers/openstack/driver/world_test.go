package driver

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

const clusterUID = "1fb25c0a-9ef1-4f0e-93d5-9d3f6b1f3c7e"

// world is a driver in this process and the simulator that it drives.
type world struct {
	*testing.T
	*Driver
	identityEndpoint string
	hooks            backendv1alpha1.BackendServiceClient
	// before answers a request in place of the cloud, where it says that it has; nil passes all of
	// them on.
	before *atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func newWorld(t *testing.T, o openstacksim.Options) *world {
	t.Helper()
	cloud := openstacksim.New(o)
	var before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	apis := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answered := before.Load(); answered == nil || !(*answered)(w, r) {
			cloud.Handler().ServeHTTP(w, r)
		}
	}))
	listener := bufconn.Listen(1 << 20)
	hooks := grpc.NewServer()
	cloud.Register(hooks)
	go func() { _ = hooks.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:hooks", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cloud.Close()
		_ = conn.Close()
		hooks.Stop()
		apis.CloseClientConnections()
		apis.Close()
	})
	return &world{
		T: t, identityEndpoint: apis.URL + "/v3", hooks: backendv1alpha1.NewBackendServiceClient(conn),
		Driver: New(session.NewPool(session.Options{}), Options{Version: "test", CreateSettle: settle, PollInterval: poll}), before: &before,
	}
}

// spec is a cloudProviderSpec with these fields beside what every one has.
func (w *world) spec(more map[string]any) []byte {
	w.Helper()
	fields := map[string]any{
		"identityEndpoint": w.identityEndpoint, "region": "RegionOne", "domainName": "Default", "username": "demo", "projectName": "demo",
		"flavor": "m1.tiny", "image": "tiny-raw", "network": "demo-net",
	}
	maps.Copy(fields, more)
	raw, err := json.Marshal(fields)
	if err != nil {
		w.Fatal(err)
	}
	return raw
}

// provider is the spec with the password.
func (w *world) provider(more map[string]any) *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: w.spec(more), Secrets: map[string][]byte{"password": []byte(openstacksim.Password)}}
}

func ref(name string) *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "kube-system", Name: name, Uid: "uid-of-" + name}
}

func meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "r", ClusterUid: clusterUID}
}

func (w *world) create(name string, more map[string]any) (*driverv1alpha1.Machine, error) {
	return w.CreateMachine(w.Context(), &driverv1alpha1.CreateMachineRequest{
		Meta: meta(), Machine: ref(name), Provider: w.provider(more), UserData: []byte("#cloud-config\n"), Tags: map[string]string{"team": "mill"},
	})
}

func (w *world) status(name string) (*driverv1alpha1.Machine, error) {
	return w.GetMachineStatus(w.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta(), Machine: ref(name), Provider: w.provider(nil)})
}

func (w *world) delete(name string) (*driverv1alpha1.Machine, error) {
	return w.DeleteMachine(w.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: meta(), Machine: ref(name), Provider: w.provider(nil)})
}

// settle is how long a request may be on its way here. What was asked for is known for ten times as
// long, in which a call has to end also where all tests run at once. poll has reads wait for one
// another for a tenth of it.
const (
	settle = 300 * time.Millisecond
	poll   = 500 * time.Millisecond
)

// settled creates a machine, if need be after a wait.
func (w *world) settled(name string, more map[string]any) (*driverv1alpha1.Machine, error) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		m, err := w.create(name, more)
		if status.Code(err) != codes.Aborted || time.Now().After(deadline) {
			return m, err
		}
	}
}

// created creates a machine, which must succeed, if need be after a wait, and looks at it.
func (w *world) created(name string, more map[string]any) *driverv1alpha1.Machine {
	w.Helper()
	m, err := w.settled(name, more)
	if err == nil && m.GetProviderId() == "" {
		m, err = w.GetMachineStatus(w.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta(), Machine: ref(name), Provider: w.provider(more)})
	}
	if err != nil {
		w.Fatalf("create %s: %v", name, err)
	}
	return m
}

// gone deletes a machine until nothing is left.
func (w *world) gone(name string) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		left, err := w.delete(name)
		if err != nil {
			w.Fatalf("delete %s: %v", name, err)
		}
		if left == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s is still there: %v", name, left)
		}
	}
}

// leavesNothing deletes a machine, the last of the project, and looks whether anything is left.
func (w *world) leavesNothing(name string) {
	w.Helper()
	w.gone(name)
	if left := w.left(); len(left) > 0 {
		w.Errorf("left are %v", left)
	}
}

// left counts what the project of the cluster has by kind.
func (w *world) left() map[string]int {
	w.Helper()
	answer, err := w.hooks.ListResources(w.Context(), &backendv1alpha1.ListResourcesRequest{ClusterUid: clusterUID})
	if err != nil {
		w.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range answer.GetResources() {
		kinds[r.GetKind()]++
	}
	return kinds
}

// answer has requests answered in place of the cloud, until the returned function is called.
func (w *world) answer(instead func(http.ResponseWriter, *http.Request) bool) (end func()) {
	w.before.Store(&instead)
	return func() { w.before.Store(nil) }
}

// inject makes the cloud's calls of an operation misbehave.
func (w *world) inject(f *backendv1alpha1.Fault) {
	w.Helper()
	if _, err := w.hooks.InjectFault(w.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f}); err != nil {
		w.Fatal(err)
	}
}

// calls counts the cloud's calls by operation.
func (w *world) calls() map[string]int64 {
	w.Helper()
	totals, err := w.hooks.GetTotals(w.Context(), &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		w.Fatal(err)
	}
	return totals.GetCalls()
}

// refused fails the test unless err has the reason.
func (w *world) refused(what string, err error, want driverv1alpha1.ErrorReason) {
	w.Helper()
	code, _ := contract.Code(want)
	if got := status.Code(err); got != code || code == codes.OK {
		w.Errorf("%s: %v, want %s", what, err, contract.ReasonName(want))
	}
}
