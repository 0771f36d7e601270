package machine

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

const idPrefix = "sawmill:///"

// cloud is a cloud and, over a socket, its driver. It outlives the driver's server.
type cloud struct {
	driverv1alpha1.UnimplementedIdentityServiceServer
	driverv1alpha1.UnimplementedMachineServiceServer
	handshakev1.UnimplementedHandshakeServiceServer

	mu      sync.Mutex
	vms     map[string]*driverv1alpha1.Machine
	made    map[string]int
	creates []*driverv1alpha1.CreateMachineRequest
	deletes int
	specs   []string        // the specs that deletes came with
	named   map[string]bool // providerIDs that looks and deletes came with
	blind   error           // every look fails with it
	refuse  error           // every create and, with refuseAll, every call fails with it
	hold    chan struct{}   // creates wait for it before they do anything, deaf to cancellation
	slow    bool            // VMs are Creating until boot is called

	// console is what each VM has printed; nil for a driver that reads no consoles. The field asked
	// counts how often it was read; calls wait for stuck, where there is one, or for their
	// deadline.
	console []byte
	asked   int
	stuck   chan struct{}
	alone   bool // the provider has no cloud controller
	// address is that of all VMs. No Node of another test has it: a Machine may find a Node by it.
	address string
}

func newCloud() *cloud {
	return &cloud{vms: map[string]*driverv1alpha1.Machine{}, made: map[string]int{}, named: map[string]bool{}, address: "192.0.2.1"}
}

// serve runs the driver until stop.
func (b *bench) serve() (stop func()) {
	b.Helper()
	_ = os.Remove(b.socket)
	listener, err := net.Listen("unix", b.socket)
	b.check(err)
	s := grpc.NewServer()
	handshakev1.RegisterHandshakeServiceServer(s, b.cloud)
	driverv1alpha1.RegisterIdentityServiceServer(s, b.cloud)
	driverv1alpha1.RegisterMachineServiceServer(s, b.cloud)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(listener)
	}()
	stop = func() {
		s.Stop()
		<-ended
	}
	b.Cleanup(stop)
	return stop
}

func (c *cloud) GetPluginInfo(context.Context, *handshakev1.GetPluginInfoRequest) (*handshakev1.GetPluginInfoResponse, error) {
	return &handshakev1.GetPluginInfoResponse{Name: provider, VendorVersion: "v1", ApiPackages: []string{contract.DriverPackage}}, nil
}

func (c *cloud) GetCapabilities(context.Context, *driverv1alpha1.GetCapabilitiesRequest) (*driverv1alpha1.GetCapabilitiesResponse, error) {
	capabilities := &driverv1alpha1.GetCapabilitiesResponse{
		Limits: &driverv1alpha1.Limits{CreateSettle: durationpb.New(0)}, ProviderIdPrefix: idPrefix, NoCloudController: c.alone,
	}
	if c.console != nil {
		capabilities.Features = []driverv1alpha1.Feature{driverv1alpha1.Feature_FEATURE_CONSOLE}
		capabilities.Limits.Deadlines = &driverv1alpha1.Deadlines{Status: durationpb.New(2 * time.Second)}
	}
	return capabilities, nil
}

func (c *cloud) Probe(context.Context, *driverv1alpha1.ProbeRequest) (*driverv1alpha1.ProbeResponse, error) {
	return &driverv1alpha1.ProbeResponse{Ready: true}, nil
}

func (c *cloud) CreateMachine(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
	c.mu.Lock()
	c.creates = append(c.creates, r)
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		return nil, c.refuse
	}
	uid := r.GetMachine().GetUid()
	vm, known := c.vms[uid]
	if !known {
		c.made[uid]++
		vm = &driverv1alpha1.Machine{
			Ref: r.GetMachine(), ClusterUid: r.GetMeta().GetClusterUid(), ProviderId: idPrefix + r.GetMachine().GetName(),
			State:     driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
			Addresses: []*driverv1alpha1.MachineAddress{{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP, Address: c.address}},
		}
		if c.slow {
			vm.State = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
		}
		c.vms[uid] = vm
	}
	return &driverv1alpha1.CreateMachineResponse{Machine: vm}, nil
}

func (c *cloud) GetMachineStatus(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named[r.GetProviderId()] = true
	if c.blind != nil {
		return nil, c.blind
	}
	vm, known := c.vms[r.GetMachine().GetUid()]
	if !known {
		return nil, refusal(codes.NotFound, "MACHINE_NOT_FOUND", "no such VM")
	}
	return &driverv1alpha1.GetMachineStatusResponse{Machine: vm}, nil
}

func (c *cloud) GetConsoleOutput(ctx context.Context, r *driverv1alpha1.GetConsoleOutputRequest) (*driverv1alpha1.GetConsoleOutputResponse, error) {
	c.mu.Lock()
	c.asked++
	_, known := c.vms[r.GetMachine().GetUid()]
	stuck := c.stuck
	c.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
		}
	}
	if !known {
		return nil, refusal(codes.NotFound, "MACHINE_NOT_FOUND", "no such VM")
	}
	return &driverv1alpha1.GetConsoleOutputResponse{Output: c.console}, nil
}

func (c *cloud) DeleteMachine(_ context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletes++
	c.specs = append(c.specs, string(r.GetProvider().GetProviderSpec()))
	c.named[r.GetProviderId()] = true
	delete(c.vms, r.GetMachine().GetUid())
	return &driverv1alpha1.DeleteMachineResponse{}, nil
}

// change does something to the cloud from outside.
func (c *cloud) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// boot lets a slow VM run.
func (c *cloud) boot() {
	c.change(func() {
		for uid, vm := range c.vms {
			c.vms[uid] = &driverv1alpha1.Machine{
				Ref: vm.GetRef(), ClusterUid: vm.GetClusterUid(), ProviderId: vm.GetProviderId(), Addresses: vm.GetAddresses(),
				State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
			}
		}
	})
}

// count returns how many creates came in, and how many VMs there are.
func (c *cloud) count() (creates, vms int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.creates), len(c.vms)
}

// refusal is an error of the driver's own.
func refusal(code codes.Code, reason, message string, details ...protoadapt.MessageV1) error {
	s, err := status.New(code, message).WithDetails(append([]protoadapt.MessageV1{
		&errdetails.ErrorInfo{Domain: provider, Reason: reason},
	}, details...)...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}
