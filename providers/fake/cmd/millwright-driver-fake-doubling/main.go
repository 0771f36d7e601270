// Command millwright-driver-fake-doubling is a mutant of the fake driver, for proofs: it breaks the
// contract's first promise by making two VMs for the first machine that it is asked to create. A
// demo or a test that does not fail with it proves nothing.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/driver"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/internal/reach"
	"github.com/millwright-dev/millwright/sdk"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	endpoint := flag.String("endpoint", "", "where to serve, as unix:///path (default $MILLWRIGHT_ENDPOINT)")
	cloudEndpoint := flag.String("cloud", "", "where the cloud serves, as unix:///path; empty: a cloud in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, *endpoint, *cloudEndpoint); err != nil {
		log.Error("driver ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, endpoint, cloudEndpoint string) error {
	client, closeCloud, err := reach.Cloud(ctx, log, reach.Target{Endpoint: cloudEndpoint})
	if err != nil {
		return err
	}
	defer closeCloud()
	return sdk.Serve(ctx, newDoubling(client), sdk.Options{Endpoint: endpoint, Log: log})
}

// doubling creates one machine twice.
type doubling struct {
	*driver.Driver
	twice *driver.Driver
	once  sync.Once
}

func newDoubling(client fakecloudv1alpha1.CloudServiceClient) *doubling {
	return &doubling{Driver: driver.New("doubling", client), twice: driver.New("doubling", &otherToken{CloudServiceClient: client})}
}

// CreateMachine breaks its promise the first time.
func (d *doubling) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	machine, err := d.Driver.CreateMachine(ctx, r)
	if err != nil {
		return nil, err
	}
	d.once.Do(func() { _, err = d.twice.CreateMachine(ctx, r) })
	return machine, err
}

// otherToken asks for a resource that exists once more, as if it did not.
type otherToken struct {
	fakecloudv1alpha1.CloudServiceClient
}

// ListVMs finds nothing.
func (o *otherToken) ListVMs(
	ctx context.Context, r *fakecloudv1alpha1.ListVMsRequest, options ...grpc.CallOption,
) (*fakecloudv1alpha1.ListVMsResponse, error) {
	answer, err := o.CloudServiceClient.ListVMs(ctx, r, options...)
	return &fakecloudv1alpha1.ListVMsResponse{Account: answer.GetAccount()}, err
}

// CreateNIC makes another NIC.
func (o *otherToken) CreateNIC(
	ctx context.Context, r *fakecloudv1alpha1.CreateNICRequest, options ...grpc.CallOption,
) (*fakecloudv1alpha1.CreateNICResponse, error) {
	r = proto.CloneOf(r)
	r.ClientToken += "-again"
	return o.CloudServiceClient.CreateNIC(ctx, r, options...)
}

// CreateVM makes another VM.
func (o *otherToken) CreateVM(
	ctx context.Context, r *fakecloudv1alpha1.CreateVMRequest, options ...grpc.CallOption,
) (*fakecloudv1alpha1.CreateVMResponse, error) {
	r = proto.CloneOf(r)
	r.ClientToken += "-again"
	return o.CloudServiceClient.CreateVM(ctx, r, options...)
}
