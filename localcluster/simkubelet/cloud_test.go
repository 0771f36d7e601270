package simkubelet

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// The states of a VM, for short.
const (
	building = backendv1alpha1.VMState_VM_STATE_BUILDING
	running  = backendv1alpha1.VMState_VM_STATE_RUNNING
	stopped  = backendv1alpha1.VMState_VM_STATE_STOPPED
	failed   = backendv1alpha1.VMState_VM_STATE_FAILED
	deleting = backendv1alpha1.VMState_VM_STATE_DELETING
	gone     = backendv1alpha1.VMState_VM_STATE_GONE
)

// cloud is a test cloud of VMs that change when they are told to.
type cloud struct {
	backendv1alpha1.UnimplementedBackendServiceServer
	mu       sync.Mutex
	vms      map[string]*backendv1alpha1.VM
	ever     map[string]bool
	revision int64
	changed  chan struct{}
	fail     bool
}

func newCloud() *cloud {
	return &cloud{vms: map[string]*backendv1alpha1.VM{}, ever: map[string]bool{}, changed: make(chan struct{})}
}

// set makes a VM, or changes its state; the user data of its first mention stays. Its id is its
// name.
func (c *cloud) set(name string, state backendv1alpha1.VMState, userData string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	vm := c.vms[name]
	if vm == nil {
		vm = &backendv1alpha1.VM{
			Id: name, Name: name, ProviderId: "test:///" + name, UserData: []byte(userData),
			Region: "here", Zone: "here-1", InstanceType: "small",
			Addresses: []*backendv1alpha1.VMAddress{{Type: "InternalIP", Address: "192.0.2.1"}},
		}
		c.ever[vm.GetProviderId()] = true
	}
	vm = proto.CloneOf(vm)
	vm.State, vm.Revision = state, c.revision
	c.vms[name] = vm
	close(c.changed)
	c.changed = make(chan struct{})
}

// knows says whether the provider id is or was one of its VMs'.
func (c *cloud) knows(providerID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ever[providerID]
}

// reset makes it a cloud that has never seen a VM.
func (c *cloud) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.vms)
	c.revision = 0
}

// failNext makes the call under way fail, or the next one.
func (c *cloud) failNext() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = true
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cloud) ListVMs(ctx context.Context, r *backendv1alpha1.ListVMsRequest) (*backendv1alpha1.ListVMsResponse, error) {
	deadline := time.After(r.GetWait().AsDuration())
	for {
		page, changed, err := c.page(r)
		if err != nil || len(page.GetVms()) > 0 {
			return page, err
		}
		select {
		case <-deadline:
			return page, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (c *cloud) page(r *backendv1alpha1.ListVMsRequest) (*backendv1alpha1.ListVMsResponse, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail {
		c.fail = false
		return nil, nil, status.Error(codes.Unavailable, "the cloud restarts")
	}
	response := &backendv1alpha1.ListVMsResponse{}
	for _, vm := range c.vms {
		if vm.GetRevision() > r.GetAfterRevision() {
			response.Vms = append(response.Vms, vm)
		}
	}
	slices.SortFunc(response.Vms, func(a, b *backendv1alpha1.VM) int { return int(a.GetRevision() - b.GetRevision()) })
	if n := int(r.GetMaxResults()); len(response.GetVms()) > n {
		response.Vms, response.More = response.Vms[:n], true
	}
	return response, c.changed, nil
}

// serve serves the cloud until the returned function is called, and returns a client of it.
func (c *cloud) serve(t *testing.T) (client backendv1alpha1.BackendServiceClient, stop func()) {
	t.Helper()
	const buffer = 1 << 20
	listener := bufconn.Listen(buffer)
	server := grpc.NewServer()
	backendv1alpha1.RegisterBackendServiceServer(server, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // Ends with Stop.
	}()
	connection, err := grpc.NewClient("passthrough:///cloud", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return backendv1alpha1.NewBackendServiceClient(connection), func() {
		_ = connection.Close()
		server.Stop()
		<-done
	}
}
