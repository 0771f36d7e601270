package sdk_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/sdk/rig"
)

func TestHandshakeSaysWhoTheDriverIs(t *testing.T) {
	conn := rig.Start(t, &sawmill{})
	got, err := handshakev1.NewHandshakeServiceClient(conn).GetPluginInfo(t.Context(), &handshakev1.GetPluginInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &handshakev1.GetPluginInfoResponse{
		Name: driverName, VendorVersion: "v1.2.3",
		ApiPackages: []string{contract.DriverPackage}, Manifest: map[string]string{"commit": "abc"}, ContractRevision: contract.Revision,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("GetPluginInfo (-want +got):\n%s", diff)
	}
}

// A core of a revision that is too far away is refused, and both are told by number.
func TestHandshakeRefusesADistantCore(t *testing.T) {
	handshake := handshakev1.NewHandshakeServiceClient(rig.Start(t, &sawmill{}))
	_, err := handshake.GetPluginInfo(t.Context(), &handshakev1.GetPluginInfoRequest{CoreVersion: "v9", ContractRevision: contract.Revision + 2})
	if message := status.Convert(err).Message(); !strings.Contains(message, "core v9 cannot use this driver: it is of revision 4 of the contract, this side of 2") {
		t.Errorf("refused with %q", message)
	}
	if _, err := handshake.GetPluginInfo(t.Context(), &handshakev1.GetPluginInfoRequest{ContractRevision: contract.Revision + 1}); err != nil {
		t.Errorf("a core of the next revision: %v", err)
	}
}

// A core of revision 1 reads the types of addresses elsewhere.
func TestAddressesHaveTheTypesOfTheRevisionBefore(t *testing.T) {
	address := func() *driverv1alpha1.MachineAddress {
		return &driverv1alpha1.MachineAddress{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_IP, Address: "192.0.2.1"}
	}
	machine := func() *driverv1alpha1.Machine {
		m := running(goodMeta(), goodRef())
		m.Addresses = []*driverv1alpha1.MachineAddress{address()}
		return m
	}
	d := &everything{list: func() (*driverv1alpha1.ListMachinesResponse, error) {
		return &driverv1alpha1.ListMachinesResponse{Machines: []*driverv1alpha1.Machine{machine()}}, nil
	}}
	d.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
		return machine(), nil
	}
	machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, d))
	made, err := machines.CreateMachine(t.Context(), goodCreate())
	if err != nil {
		t.Fatal(err)
	}
	listed, err := machines.ListMachines(t.Context(), goodList())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(listed.GetMachines(), made.GetMachine()) {
		if got := m.GetAddresses()[0].GetLegacyType(); got != "ExternalIP" { //nolint:staticcheck // it is deprecated, and filled in for those that read it
			t.Errorf("the type is told as %q", got)
		}
	}
}

func TestCapabilitiesFollowFromTheInterfaces(t *testing.T) {
	var all []driverv1alpha1.Feature
	for _, i := range slices.Sorted(maps.Keys(driverv1alpha1.Feature_name))[1:] {
		all = append(all, driverv1alpha1.Feature(i))
	}
	limits := &driverv1alpha1.Limits{MaxConcurrentRequests: 7, MaxUserDataBytes: 16}
	info := func() sdk.Info {
		i := goodInfo()
		i.Limits, i.NoCloudController = limits, true
		return i
	}
	cases := map[string]struct {
		driver sdk.Driver
		want   []driverv1alpha1.Feature
	}{
		"the least":  {&sawmill{info: info}, []driverv1alpha1.Feature{driverv1alpha1.Feature_FEATURE_LEADER_FENCING}},
		"everything": {&everything{sawmill: sawmill{info: info}}, all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conn := rig.Start(t, tc.driver)
			got, err := driverv1alpha1.NewIdentityServiceClient(conn).GetCapabilities(t.Context(), &driverv1alpha1.GetCapabilitiesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			want := &driverv1alpha1.GetCapabilitiesResponse{Features: tc.want, Limits: limits, ProviderIdPrefix: prefix, NoCloudController: true}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("GetCapabilities (-want +got):\n%s", diff)
			}
		})
	}
}

// optionalCalls calls every RPC that belongs to a feature.
func optionalCalls(ctx context.Context, conn grpc.ClientConnInterface) map[string]error {
	machines, specs := driverv1alpha1.NewMachineServiceClient(conn), driverv1alpha1.NewProviderSpecServiceClient(conn)
	errs := map[string]error{}
	_, errs["ListMachines"] = machines.ListMachines(ctx, goodList())
	_, errs["AdoptMachine"] = machines.AdoptMachine(ctx, &driverv1alpha1.AdoptMachineRequest{
		Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider(), ProviderId: prefix + "u",
	})
	_, errs["GetConsoleOutput"] = machines.GetConsoleOutput(ctx, goodConsole())
	_, errs["GetProviderSpecSchema"] = specs.GetProviderSpecSchema(ctx, &driverv1alpha1.GetProviderSpecSchemaRequest{})
	_, errs["DefaultProviderSpec"] = specs.DefaultProviderSpec(ctx, &driverv1alpha1.DefaultProviderSpecRequest{Meta: goodMeta(), Provider: goodProvider()})
	_, errs["ValidateProviderSpec"] = specs.ValidateProviderSpec(ctx, &driverv1alpha1.ValidateProviderSpecRequest{Meta: goodMeta(), Provider: goodProvider()})
	_, errs["GetInstanceTemplate"] = specs.GetInstanceTemplate(ctx, &driverv1alpha1.GetInstanceTemplateRequest{Meta: goodMeta(), Provider: goodProvider()})
	return errs
}

func TestCallsOfAFeature(t *testing.T) {
	cases := map[string]struct {
		driver sdk.Driver
		want   codes.Code
	}{
		"that is not announced": {&sawmill{}, codes.Unimplemented},
		"that is announced":     {&everything{}, codes.OK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for call, err := range optionalCalls(t.Context(), rig.Start(t, tc.driver)) {
				if got := status.Code(err); got != tc.want {
					t.Errorf("%s answers %v, want %s", call, err, tc.want)
				}
			}
		})
	}
}

// misspelt wants to list and does not.
type misspelt struct{ sawmill }

func (misspelt) ListMachines(context.Context) ([]*driverv1alpha1.Machine, error) { return nil, nil }

// unprobed wants to be probed and is not.
type unprobed struct{ sawmill }

func (unprobed) Probe() error { return nil }

func TestDriversThatAreRefused(t *testing.T) {
	change := func(change func(*sdk.Info)) sdk.Driver {
		return &sawmill{info: func() sdk.Info {
			i := goodInfo()
			change(&i)
			return i
		}}
	}
	cases := map[string]struct {
		driver sdk.Driver
		names  string // what the error has to name
	}{
		"no name":              {change(func(i *sdk.Info) { i.Name = "" }), "name"},
		"a name core refuses":  {change(func(i *sdk.Info) { i.Name = "Saw Mill" }), "name"},
		"no version":           {change(func(i *sdk.Info) { i.Version = "" }), "vendor_version"},
		"no prefix":            {change(func(i *sdk.Info) { i.ProviderIDPrefix = "" }), "provider_id_prefix"},
		"a limit below zero":   {change(func(i *sdk.Info) { i.Limits = &driverv1alpha1.Limits{MaxUserDataBytes: -1} }), "limits.max_user_data_bytes"},
		"a method that misses": {&misspelt{}, "ListMachines"},
		"a probe that misses":  {&unprobed{}, "Probe"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// A context that has ended: should Serve serve, it returns nil.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			path := filepath.Join(t.TempDir(), "d.sock")
			err := sdk.Serve(ctx, tc.driver, sdk.Options{Endpoint: "unix://" + path, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("Serve = %v, want an error that names %s", err, tc.names)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	cases := map[string]struct {
		driver sdk.Driver
		want   *driverv1alpha1.ProbeResponse
	}{
		"a driver that is always ready": {&sawmill{}, &driverv1alpha1.ProbeResponse{Ready: true}},
		"a driver that is ready":        {&everything{}, &driverv1alpha1.ProbeResponse{Ready: true}},
		"a driver that is not": {
			&everything{probe: func(context.Context) error { return errors.New("the blade is being changed") }},
			&driverv1alpha1.ProbeResponse{Reason: "the blade is being changed"},
		},
		"a driver that does not say why": {
			&everything{probe: func(context.Context) error { return errors.New("") }},
			&driverv1alpha1.ProbeResponse{Reason: "the driver is not ready and does not say why"},
		},
		"a driver that hangs": {
			&everything{probe: func(ctx context.Context) error {
				<-ctx.Done()
				return errors.New("asked too long")
			}},
			&driverv1alpha1.ProbeResponse{Reason: "asked too long"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := driverv1alpha1.NewIdentityServiceClient(rig.Start(t, tc.driver)).Probe(t.Context(), &driverv1alpha1.ProbeRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("Probe (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	conn := serve(t, &sawmill{}, sdk.Options{}).dial(t)
	for _, service := range []string{"", "millwright.driver.v1alpha1.MachineService", "millwright.handshake.v1.HandshakeService"} {
		got, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v; want SERVING", service, got, err)
		}
	}
	_, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "nobody"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("health of an unknown service: %v, want NOT_FOUND", err)
	}
}
