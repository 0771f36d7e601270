package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

// identity is what a driver says of itself, fixed when it starts.
type identity struct {
	plugin       *handshakev1.GetPluginInfoResponse
	capabilities *driverv1alpha1.GetCapabilitiesResponse
}

// identityOf asks the driver once, and fails where core would refuse the answer.
func identityOf(d Driver) (identity, error) {
	offered, err := features(d)
	if err != nil {
		return identity{}, err
	}
	info := d.Info()
	id := identity{
		plugin: &handshakev1.GetPluginInfoResponse{
			Name: info.Name, VendorVersion: info.Version,
			ApiPackages: []string{contract.DriverPackage}, Manifest: maps.Clone(info.Manifest), ContractRevision: contract.Revision,
		},
		capabilities: &driverv1alpha1.GetCapabilitiesResponse{
			Features: offered, Limits: proto.CloneOf(info.Limits), ProviderIdPrefix: info.ProviderIDPrefix,
			NoCloudController: info.NoCloudController,
		},
	}
	for _, answer := range []any{id.plugin, id.capabilities} {
		if err := contract.CheckAnswer(answer).Err(); err != nil {
			return identity{}, fmt.Errorf("driver %T: its Info breaks the contract: %w", d, err)
		}
	}
	return id, nil
}

// register serves a driver on s.
func register(s grpc.ServiceRegistrar, id identity, d Driver, log *slog.Logger) {
	handshakev1.RegisterHandshakeServiceServer(s, &handshakeService{identity: id, log: log})
	driverv1alpha1.RegisterIdentityServiceServer(s, &identityService{identity: id, driver: d})
	driverv1alpha1.RegisterMachineServiceServer(s, &machineService{driver: d})
	driverv1alpha1.RegisterProviderSpecServiceServer(s, &specService{driver: d})
}

type handshakeService struct {
	handshakev1.UnimplementedHandshakeServiceServer
	identity identity
	log      *slog.Logger
}

func (s *handshakeService) GetPluginInfo(ctx context.Context, r *handshakev1.GetPluginInfoRequest) (*handshakev1.GetPluginInfoResponse, error) {
	if err := contract.CheckRevision(r.GetContractRevision()); err != nil {
		return nil, NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL, fmt.Sprintf("core %s cannot use this driver: %s", r.GetCoreVersion(), err))
	}
	s.log.InfoContext(ctx, "core asks for the driver", "core", shorten(r.GetCoreVersion(), maxDetailText), "revision", r.GetContractRevision())
	return s.identity.plugin, nil
}

// probeTimeout is the contract's: IdentityService.Probe answers within a second.
const probeTimeout = time.Second

type identityService struct {
	driverv1alpha1.UnimplementedIdentityServiceServer
	identity identity
	driver   Driver
}

func (s *identityService) GetCapabilities(
	context.Context, *driverv1alpha1.GetCapabilitiesRequest,
) (*driverv1alpha1.GetCapabilitiesResponse, error) {
	return s.identity.capabilities, nil
}

func (s *identityService) Probe(ctx context.Context, _ *driverv1alpha1.ProbeRequest) (*driverv1alpha1.ProbeResponse, error) {
	prober, ok := s.driver.(Prober)
	if !ok {
		return &driverv1alpha1.ProbeResponse{Ready: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := prober.Probe(ctx)
	if err == nil {
		return &driverv1alpha1.ProbeResponse{Ready: true}, nil
	}
	reason := shorten(err.Error(), maxMessage)
	if reason == "" {
		reason = "the driver is not ready and does not say why"
	}
	return &driverv1alpha1.ProbeResponse{Reason: reason}, nil
}

// notOffered is the answer in place of a driver that lacks a method. Nothing that a driver returns
// becomes UNIMPLEMENTED: core would take it that the feature is off.
type notOffered string

func (n notOffered) Error() string { return "this driver does not offer " + string(n) }

func (n notOffered) GRPCStatus() *status.Status { return status.New(codes.Unimplemented, n.Error()) }

type machineService struct {
	driverv1alpha1.UnimplementedMachineServiceServer
	driver Driver
}

func (s *machineService) CreateMachine(
	ctx context.Context, r *driverv1alpha1.CreateMachineRequest,
) (*driverv1alpha1.CreateMachineResponse, error) {
	m, err := present(s.driver.CreateMachine(ctx, r))
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.CreateMachineResponse{Machine: m}, nil
}

func (s *machineService) GetMachineStatus(
	ctx context.Context, r *driverv1alpha1.GetMachineStatusRequest,
) (*driverv1alpha1.GetMachineStatusResponse, error) {
	m, err := present(s.driver.GetMachineStatus(ctx, r))
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.GetMachineStatusResponse{Machine: m}, nil
}

func (s *machineService) DeleteMachine(
	ctx context.Context, r *driverv1alpha1.DeleteMachineRequest,
) (*driverv1alpha1.DeleteMachineResponse, error) {
	m, err := s.driver.DeleteMachine(ctx, r)
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.DeleteMachineResponse{Machine: m}, nil
}

func (s *machineService) AdoptMachine(
	ctx context.Context, r *driverv1alpha1.AdoptMachineRequest,
) (*driverv1alpha1.AdoptMachineResponse, error) {
	adopter, ok := s.driver.(Adopter)
	if !ok {
		return nil, notOffered("AdoptMachine")
	}
	m, err := present(adopter.AdoptMachine(ctx, r))
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.AdoptMachineResponse{Machine: m}, nil
}

func (s *machineService) ListMachines(
	ctx context.Context, r *driverv1alpha1.ListMachinesRequest,
) (*driverv1alpha1.ListMachinesResponse, error) {
	d, ok := s.driver.(Lister)
	if !ok {
		return nil, notOffered("ListMachines")
	}
	return present(d.ListMachines(ctx, r))
}

func (s *machineService) GetConsoleOutput(
	ctx context.Context, r *driverv1alpha1.GetConsoleOutputRequest,
) (*driverv1alpha1.GetConsoleOutputResponse, error) {
	d, ok := s.driver.(ConsoleReader)
	if !ok {
		return nil, notOffered("GetConsoleOutput")
	}
	output, err := d.GetConsoleOutput(ctx, r)
	if err != nil {
		return nil, err
	}
	newest := output[max(0, len(output)-contract.MaxConsoleBytes):]
	return &driverv1alpha1.GetConsoleOutputResponse{Output: newest}, nil
}

type specService struct {
	driverv1alpha1.UnimplementedProviderSpecServiceServer
	driver Driver
}

func (s *specService) GetProviderSpecSchema(
	ctx context.Context, r *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	d, ok := s.driver.(SpecSchema)
	if !ok {
		return nil, notOffered("GetProviderSpecSchema")
	}
	return present(d.GetProviderSpecSchema(ctx, r))
}

func (s *specService) DefaultProviderSpec(
	ctx context.Context, r *driverv1alpha1.DefaultProviderSpecRequest,
) (*driverv1alpha1.DefaultProviderSpecResponse, error) {
	d, ok := s.driver.(SpecDefaulter)
	if !ok {
		return nil, notOffered("DefaultProviderSpec")
	}
	return present(d.DefaultProviderSpec(ctx, r))
}

func (s *specService) ValidateProviderSpec(
	ctx context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	d, ok := s.driver.(SpecValidator)
	if !ok {
		return nil, notOffered("ValidateProviderSpec")
	}
	return present(d.ValidateProviderSpec(ctx, r))
}

func (s *specService) GetInstanceTemplate(
	ctx context.Context, r *driverv1alpha1.GetInstanceTemplateRequest,
) (*driverv1alpha1.GetInstanceTemplateResponse, error) {
	d, ok := s.driver.(InstanceTemplater)
	if !ok {
		return nil, notOffered("GetInstanceTemplate")
	}
	return present(d.GetInstanceTemplate(ctx, r))
}

// present refuses an answer that is nil: on the wire it would be an empty one, and an empty list
// says that no VM is left.
func present[T any](answer *T, err error) (*T, error) {
	if err == nil && answer == nil {
		return nil, fmt.Errorf("the driver returned neither %T nor an error", answer)
	}
	return answer, err
}
