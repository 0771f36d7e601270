package sdk

import (
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Driver is what every author writes. The comments on MachineService in the contract bind each
// method; in short: create ensures, get changes nothing, delete of nothing succeeds, and none waits
// for a VM to boot or to die. Methods are called concurrently, also for one machine, and only with
// requests whose shape holds (contract.CheckRequest, and user data within Info.Limits). They must
// not keep or change a request. Errors come from NewError.
type Driver interface {
	// Info says who the driver is. Serve calls it once: it holds for the life of the process.
	Info() Info
	// CreateMachine ensures that exactly one VM exists for the uid, and returns it as it is now;
	// never nil without an error.
	CreateMachine(ctx context.Context, request *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error)
	// GetMachineStatus returns what the cloud knows of the uid; MACHINE_NOT_FOUND only when the
	// cloud has said so.
	GetMachineStatus(ctx context.Context, request *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error)
	// DeleteMachine removes every resource of the uid. It returns the machine, DELETING, while
	// anything remains, and nil without an error once nothing is left; never MACHINE_NOT_FOUND.
	DeleteMachine(ctx context.Context, request *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error)
}

// Info is who a driver is and what bounds its calls.
type Info struct {
	// Name is the cloudProvider that selects the driver, and the domain of its errors; see
	// contract.ValidDriverName.
	Name string
	// Version is the driver's own, for people. Required.
	Version string
	// ProviderIDPrefix is what every provider_id begins with, e.g. "openstack:///". Required.
	ProviderIDPrefix string
	// NoCloudController says that no cloud controller manager for the provider is known, so that
	// core initialises Nodes: it sets their providerID to the machine's provider_id and takes the
	// taint node.cloudprovider.kubernetes.io/uninitialized away. With false, a Node with that taint
	// is not Running until a cloud controller manager has done both.
	NoCloudController bool
	// Limits may be nil: then core's defaults hold. Declare CreateSettle: without it a machine
	// whose create had no known outcome is kept for five minutes after its delete.
	Limits *driverv1alpha1.Limits
	// Manifest holds free facts, such as a commit or a home page. No secrets.
	Manifest map[string]string
}

// The interfaces below are optional. A driver that implements one announces its feature; without it
// the RPC answers UNIMPLEMENTED.

// Lister is FEATURE_LIST. The list is complete or an error, also of what half-made creates have
// left.
type Lister interface {
	// ListMachines returns a page, with machines of meta.cluster_uid alone; never nil without an
	// error.
	ListMachines(ctx context.Context, request *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error)
}

// Adopter is FEATURE_ADOPT. It returns the machine as it is now; never nil without an error.
type Adopter interface {
	// AdoptMachine is idempotent and refuses a VM that carries another uid (NAME_TAKEN).
	AdoptMachine(ctx context.Context, request *driverv1alpha1.AdoptMachineRequest) (*driverv1alpha1.Machine, error)
}

// ConsoleReader is FEATURE_CONSOLE.
type ConsoleReader interface {
	// GetConsoleOutput returns the newest part of what the VM has written to its serial console.
	// It changes nothing and does not wait for the VM: no output yet is an empty one. More than
	// contract.MaxConsoleBytes lose their beginning before they are sent. MACHINE_NOT_FOUND as
	// for GetMachineStatus.
	GetConsoleOutput(ctx context.Context, request *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error)
}

// SpecSchema is FEATURE_PROVIDER_SPEC_SCHEMA. It never calls the cloud.
type SpecSchema interface {
	// GetProviderSpecSchema returns a JSON Schema; fields that may come from a Secret are
	// writeOnly.
	GetProviderSpecSchema(ctx context.Context, request *driverv1alpha1.GetProviderSpecSchemaRequest) (*driverv1alpha1.GetProviderSpecSchemaResponse, error)
}

// SpecDefaulter is FEATURE_PROVIDER_SPEC_DEFAULT. It is idempotent and never calls the cloud.
type SpecDefaulter interface {
	// DefaultProviderSpec changes no field that is set; never nil without an error.
	DefaultProviderSpec(ctx context.Context, request *driverv1alpha1.DefaultProviderSpecRequest) (*driverv1alpha1.DefaultProviderSpecResponse, error)
}

// SpecValidator is FEATURE_PROVIDER_SPEC_VALIDATE. Findings are an answer, not an error.
type SpecValidator interface {
	// ValidateProviderSpec calls the cloud only when asked to look online; never nil without an
	// error.
	ValidateProviderSpec(ctx context.Context, request *driverv1alpha1.ValidateProviderSpecRequest) (*driverv1alpha1.ValidateProviderSpecResponse, error)
}

// InstanceTemplater is FEATURE_INSTANCE_TEMPLATE.
type InstanceTemplater interface {
	// GetInstanceTemplate says what a VM of a spec would offer; never nil without an error.
	GetInstanceTemplate(ctx context.Context, request *driverv1alpha1.GetInstanceTemplateRequest) (*driverv1alpha1.GetInstanceTemplateResponse, error)
}

// Prober answers IdentityService.Probe; a driver without it is always ready.
type Prober interface {
	// Probe returns nil when the driver can take calls, else an error whose text says why not,
	// without secrets. It never calls the cloud and returns within a second.
	Probe(ctx context.Context) error
}
