package driver

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// Name is the cloudProvider that selects this driver, and the domain of its errors.
const Name = "qemu"

// Options are what the operator says. All are required but where a default is named.
type Options struct {
	// Name is what the driver is called; empty means [Name].
	Name string
	// Version is the driver's own, for people.
	Version string
	// QEMU and QEMUImg are the programs, as paths or names in $PATH.
	QEMU, QEMUImg string
	// Images is the folder whose files specs may name, as an absolute path.
	Images vm.Images
	// Accelerator is vm.KVM or vm.TCG; empty: found out once, by a trial.
	Accelerator string
	// Bridge is that of VMs with the network bridge; without a name there is none.
	Bridge vm.Bridge
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
	host    vm.Host
}

var (
	_ sdk.Driver            = (*Driver)(nil)
	_ sdk.Lister            = (*Driver)(nil)
	_ sdk.Prober            = (*Driver)(nil)
	_ sdk.ConsoleReader     = (*Driver)(nil)
	_ sdk.SpecSchema        = (*Driver)(nil)
	_ sdk.SpecDefaulter     = (*Driver)(nil)
	_ sdk.SpecValidator     = (*Driver)(nil)
	_ sdk.InstanceTemplater = (*Driver)(nil)
)

// New returns a driver of the VMs in a store. Which accelerator there is it begins to find out,
// until ctx ends.
func New(ctx context.Context, store *vm.Store, o Options) *Driver {
	if o.Name == "" {
		o.Name = Name
	}
	accelerator := sync.OnceValue(func() string {
		if o.Accelerator != "" {
			return o.Accelerator
		}
		return vm.ChooseAccelerator(ctx, o.QEMU)
	})
	go accelerator()
	host := vm.Host{QEMU: o.QEMU, QEMUImg: o.QEMUImg, Images: o.Images, Accelerator: accelerator, Bridge: o.Bridge}
	return &Driver{options: o, store: store, host: host}
}

const (
	// maxRequests is what a host has use for: changes are made one after the other.
	maxRequests = 8
	// maxUserData is core's own bound; the seed would have room for more.
	maxUserData = 64 << 10
	// createSettle is how long a change may go on whose caller is gone: it ends with the step that
	// it is in.
	createSettle = 10 * time.Second
)

// Info implements sdk.Driver.
func (d *Driver) Info() sdk.Info {
	return sdk.Info{
		Name: d.options.Name, Version: d.options.Version, ProviderIDPrefix: d.prefix(), NoCloudController: true,
		Limits: &driverv1alpha1.Limits{
			MaxConcurrentRequests: maxRequests, MaxUserDataBytes: maxUserData, CreateSettle: durationpb.New(createSettle),
		},
	}
}

// prefix begins each VM's id: qemu://HOST/UID.
func (d *Driver) prefix() string { return "qemu://" + d.store.HostID() + "/" }

// Probe implements sdk.Prober.
func (d *Driver) Probe(context.Context) error {
	if _, err := d.store.Records(); err != nil {
		return fmt.Errorf("the state directory cannot be read: %w", err)
	}
	return d.findPrograms()
}

// findPrograms says which of QEMU's programs is missing.
func (d *Driver) findPrograms() error {
	var errs []error
	for flag, program := range map[string]string{"--qemu": d.options.QEMU, "--qemu-img": d.options.QEMUImg} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w; install QEMU, or say where it is", flag, err))
		}
	}
	return errors.Join(errs...)
}
