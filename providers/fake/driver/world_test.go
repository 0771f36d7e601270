package driver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
	"github.com/millwright-dev/millwright/providers/fake/driver"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/rig"
	"github.com/millwright-dev/millwright/sdk/socket"
)

const (
	creating = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
	running  = driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
	stopped  = driverv1alpha1.MachineState_MACHINE_STATE_STOPPED
	deleting = driverv1alpha1.MachineState_MACHINE_STATE_DELETING
	failed   = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
)

// world is a cloud on a socket, and a driver of it on another, as core meets them.
type world struct {
	*testing.T
	hooks    backendv1alpha1.BackendServiceClient
	conn     *grpc.ClientConn
	machines driverv1alpha1.MachineServiceClient
}

func newWorld(t *testing.T, o cloud.Options) *world {
	t.Helper()
	c, err := cloud.Open(o)
	if err != nil {
		t.Fatalf("open cloud: %v", err)
	}
	// Not t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("", "fake")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "unix://" + filepath.Join(dir, "cloud.sock")
	listener, err := socket.Listen(endpoint)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	server := grpc.NewServer()
	c.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = c.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve the cloud: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w := &world{T: t, hooks: backendv1alpha1.NewBackendServiceClient(conn), conn: conn}
	w.machines = w.anotherDriver()
	return w
}

// anotherDriver serves one more driver of the same cloud.
func (w *world) anotherDriver() driverv1alpha1.MachineServiceClient {
	return driverv1alpha1.NewMachineServiceClient(rig.Start(w.T, driver.New("test", fakecloudv1alpha1.NewCloudServiceClient(w.conn))))
}

func meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "request", ClusterUid: "cluster"}
}

func ref(uid string) *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "default", Name: "machine-" + uid, Uid: uid}
}

func provider(spec string) *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(spec)}
}

const smallSpec = `{"flavor":"small","image":"ubuntu-24.04"}`

func createRequest(uid string) *driverv1alpha1.CreateMachineRequest {
	return &driverv1alpha1.CreateMachineRequest{
		Meta: meta(), Machine: ref(uid), Provider: provider(smallSpec), UserData: []byte("\x00binary\xff" + uid),
		Tags: map[string]string{"team": "mill"},
	}
}

func statusRequest(uid string) *driverv1alpha1.GetMachineStatusRequest {
	return &driverv1alpha1.GetMachineStatusRequest{Meta: meta(), Machine: ref(uid), Provider: provider(smallSpec)}
}

func deleteRequest(uid string) *driverv1alpha1.DeleteMachineRequest {
	return &driverv1alpha1.DeleteMachineRequest{Meta: meta(), Machine: ref(uid), Provider: provider(smallSpec)}
}

func (w *world) create(uid string) *driverv1alpha1.Machine {
	w.Helper()
	answer, err := w.machines.CreateMachine(w.Context(), createRequest(uid))
	if err != nil {
		w.Fatalf("create %s: %v", uid, err)
	}
	return answer.GetMachine()
}

func (w *world) status(uid string) *driverv1alpha1.Machine {
	w.Helper()
	answer, err := w.machines.GetMachineStatus(w.Context(), statusRequest(uid))
	if err != nil {
		w.Fatalf("status of %s: %v", uid, err)
	}
	return answer.GetMachine()
}

func (w *world) delete(uid string) *driverv1alpha1.Machine {
	w.Helper()
	answer, err := w.machines.DeleteMachine(w.Context(), deleteRequest(uid))
	if err != nil {
		w.Fatalf("delete %s: %v", uid, err)
	}
	return answer.GetMachine()
}

// list returns all machines of the cluster by uid, and fails when one appears twice.
func (w *world) list(pageSize int32) map[string]*driverv1alpha1.Machine {
	w.Helper()
	found := map[string]*driverv1alpha1.Machine{}
	for token := ""; ; {
		page, err := w.machines.ListMachines(w.Context(), &driverv1alpha1.ListMachinesRequest{
			Meta: meta(), Provider: provider("{}"), PageSize: pageSize, PageToken: token,
		})
		if err != nil {
			w.Fatalf("list: %v", err)
		}
		if pageSize > 0 && len(page.GetMachines()) > int(pageSize) {
			w.Errorf("a page of %d, want at most %d", len(page.GetMachines()), pageSize)
		}
		for _, m := range page.GetMachines() {
			if found[m.GetRef().GetUid()] != nil {
				w.Errorf("%s is listed twice", m.GetRef().GetUid())
			}
			found[m.GetRef().GetUid()] = m
		}
		if token = page.GetNextPageToken(); token == "" {
			return found
		}
	}
}

// expectCloud checks how many VMs the cloud ever made, and how many resources there are.
func (w *world) expectCloud(created, left int64) {
	w.Helper()
	totals, err := w.hooks.GetTotals(w.Context(), &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		w.Fatalf("totals: %v", err)
	}
	if totals.GetVmsCreated() != created || totals.GetResourcesLeft() != left {
		w.Errorf("the cloud made %d VMs and has %d resources left, want %d and %d",
			totals.GetVmsCreated(), totals.GetResourcesLeft(), created, left)
	}
}

// expectReason checks an error's reason and code.
func (w *world) expectReason(err error, code codes.Code, reason string) {
	w.Helper()
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			if status.Code(err) != code || info.GetReason() != reason || info.GetDomain() != driver.Name {
				w.Errorf("got %v of %s and %v, want %v and %s", info.GetReason(), info.GetDomain(), err, code, reason)
			}
			return
		}
	}
	w.Errorf("got %v without ErrorInfo, want %v and %s", err, code, reason)
}

func (w *world) inject(f *backendv1alpha1.Fault) string {
	w.Helper()
	answer, err := w.hooks.InjectFault(w.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f})
	if err != nil {
		w.Fatalf("inject: %v", err)
	}
	return answer.GetId()
}

func (w *world) removeFaults() {
	w.Helper()
	if _, err := w.hooks.RemoveFaults(w.Context(), &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		w.Fatalf("remove faults: %v", err)
	}
}

// await follows the ledger until a call of the operation is as far as wanted.
func (w *world) await(operation string, wanted func(*backendv1alpha1.Call) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
	defer cancel()
	for revision := int64(0); ; {
		answer, err := w.hooks.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{
			AfterRevision: revision, Wait: durationpb.New(time.Minute), Operation: operation,
		})
		if err != nil {
			w.Fatalf("follow the ledger: %v", err)
		}
		for _, one := range answer.GetCalls() {
			if wanted(one) {
				return
			}
			revision = one.GetRevision()
		}
	}
}

func (w *world) change(id string, change backendv1alpha1.VMChange) {
	w.Helper()
	if _, err := w.hooks.ChangeVM(w.Context(), &backendv1alpha1.ChangeVMRequest{Id: id, Change: change, Message: "host burnt"}); err != nil {
		w.Fatalf("%v: %v", change, err)
	}
}
