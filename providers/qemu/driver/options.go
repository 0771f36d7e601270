package driver

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// Options are what the operator says. All are required but where a default is named.
type Options struct {
	// Host is what VMs are made with. Without an accelerator one is found out once, by a trial.
	vm.Host

	// Name is the cloudProvider that selects the driver, and the domain of its errors.
	Name string
	// Version is the driver's own, for people.
	Version string
	// MemoryMiB is what all VMs may have together.
	MemoryMiB int64
	// ShutdownGrace is how long a VM that is deleted may take to shut down; with 0 it is killed at
	// once.
	ShutdownGrace time.Duration
}

// Driver implements the contract. It is safe for concurrent use.
type Driver struct {
	options Options
	store   *vm.Store
	// host returns the options' with an accelerator. It waits for the trial, which takes a while.
	host func() vm.Host
}

// New returns a driver of the VMs in a store. Which accelerator there is it begins to find out,
// until ctx ends.
func New(ctx context.Context, store *vm.Store, o Options) *Driver {
	d := &Driver{options: o, store: store, host: sync.OnceValue(func() vm.Host {
		host := o.Host
		if host.Accelerator == "" {
			host.Accelerator = vm.ChooseAccelerator(ctx, host.QEMU)
		}
		return host
	})}
	go d.host()
	return d
}

const (
	// maxRequests is what a host has use for: changes are made one after the other.
	maxRequests = 8
	// createSettle is how long a change may go on whose caller is gone: it ends with the step that
	// it is in.
	createSettle = 10 * time.Second
)

// Info implements sdk.Driver.
func (d *Driver) Info() sdk.Info {
	return sdk.Info{
		Name: d.options.Name, Version: d.options.Version, ProviderIDPrefix: d.prefix(), NoCloudController: true,
		Limits: &sdk.Limits{
			// The seed would have room for more user data than core sends.
			MaxConcurrentRequests: maxRequests, MaxUserDataBytes: contract.DefaultMaxUserDataBytes, CreateSettle: durationpb.New(createSettle),
		},
	}
}

// prefix begins each VM's id: qemu://HOST/UID.
func (d *Driver) prefix() string { return "qemu://" + d.store.HostID() + "/" }

// Probe implements sdk.Prober.
func (d *Driver) Probe(context.Context) error {
	if _, err := d.store.VMs(); err != nil {
		return fmt.Errorf("the state directory cannot be read: %w", err)
	}
	return d.findPrograms()
}

// findPrograms says which of QEMU's programs is missing.
func (d *Driver) findPrograms() error {
	var errs []error
	for _, one := range []struct{ flag, program string }{{"--qemu", d.options.QEMU}, {"--qemu-img", d.options.QEMUImg}} {
		if _, err := exec.LookPath(one.program); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w; install QEMU, or say where it is", one.flag, err))
		}
	}
	return errors.Join(errs...)
}
