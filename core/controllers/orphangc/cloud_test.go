package orphangc

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

const (
	provider   = "sawmill"
	idPrefix   = "sawmill:///"
	clusterUID = "cluster"
)

// cloud is an account and its driver. Lists have one VM a page.
type cloud struct {
	driverv1alpha1.UnimplementedIdentityServiceServer
	driverv1alpha1.UnimplementedMachineServiceServer
	handshakev1.UnimplementedHandshakeServiceServer

	mu      sync.Mutex
	vms     []*driverv1alpha1.Machine
	lists   int // begun
	deletes []string
	refuse  error  // each delete fails with it
	fail    error  // each list fails with it, after its first page
	slow    bool   // a delete leaves the VM Deleting
	key     string // the secret that the last delete came with
}

func newCloud(vms ...*driverv1alpha1.Machine) *cloud { return &cloud{vms: vms} }

// aged is a VM of this cluster, made so long ago.
func aged(uid string, age time.Duration) *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{
		Ref: &driverv1alpha1.MachineRef{Namespace: "ns", Name: "m-" + uid, Uid: uid}, ClusterUid: clusterUID,
		ProviderId: idPrefix + uid, State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
		CreateTime: timestamppb.New(time.Now().Add(-age)),
	}
}

// serve serves the driver and returns its socket.
func (c *cloud) serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mw") // t.TempDir is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	handshakev1.RegisterHandshakeServiceServer(s, c)
	driverv1alpha1.RegisterIdentityServiceServer(s, c)
	driverv1alpha1.RegisterMachineServiceServer(s, c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(listener)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-ended
	})
	return socket
}

func (c *cloud) GetPluginInfo(context.Context, *handshakev1.GetPluginInfoRequest) (*handshakev1.GetPluginInfoResponse, error) {
	return &handshakev1.GetPluginInfoResponse{Name: provider, VendorVersion: "v1", ApiPackages: []string{contract.DriverPackage}}, nil
}

func (c *cloud) GetCapabilities(context.Context, *driverv1alpha1.GetCapabilitiesRequest) (*driverv1alpha1.GetCapabilitiesResponse, error) {
	return &driverv1alpha1.GetCapabilitiesResponse{
		Features: []driverv1alpha1.Feature{driverv1alpha1.Feature_FEATURE_LIST},
		Limits:   &driverv1alpha1.Limits{CreateSettle: durationpb.New(0)}, ProviderIdPrefix: idPrefix,
	}, nil
}

func (c *cloud) Probe(context.Context, *driverv1alpha1.ProbeRequest) (*driverv1alpha1.ProbeResponse, error) {
	return &driverv1alpha1.ProbeResponse{Ready: true}, nil
}

func (c *cloud) ListMachines(_ context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.GetPageToken() == "" {
		c.lists++
	} else if c.fail != nil {
		return nil, c.fail
	}
	page := &driverv1alpha1.ListMachinesResponse{}
	for i, vm := range c.vms {
		if r.GetPageToken() != "" && vm.GetRef().GetUid() <= r.GetPageToken() {
			continue
		}
		page.Machines = append(page.Machines, vm)
		if i+1 < len(c.vms) {
			page.NextPageToken = vm.GetRef().GetUid()
		}
		break
	}
	return page, nil
}

func (c *cloud) DeleteMachine(_ context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletes = append(c.deletes, r.GetMachine().GetUid())
	c.key = string(r.GetProvider().GetSecrets()["key"])
	if c.refuse != nil {
		return nil, c.refuse
	}
	for i, vm := range c.vms {
		if vm.GetRef().GetUid() != r.GetMachine().GetUid() {
			continue
		}
		if c.slow && vm.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_DELETING {
			vm.State = driverv1alpha1.MachineState_MACHINE_STATE_DELETING
			return &driverv1alpha1.DeleteMachineResponse{Machine: vm}, nil
		}
		c.vms = append(c.vms[:i:i], c.vms[i+1:]...)
		break
	}
	return &driverv1alpha1.DeleteMachineResponse{}, nil
}

// change does something to the cloud from outside.
func (c *cloud) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// left returns the uids there are, how many lists were begun, and who was deleted.
func (c *cloud) left() (uids []string, lists int, deletes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, vm := range c.vms {
		uids = append(uids, vm.GetRef().GetUid())
	}
	return uids, c.lists, append([]string(nil), c.deletes...)
}

// refusal is an error of the driver's own.
func refusal(code codes.Code, reason, message string) error {
	s, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{Domain: provider, Reason: reason})
	if err != nil {
		panic(err)
	}
	return s.Err()
}
