package conformance

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

func identityChecks() []Check {
	return []Check{
		{
			ID: "identity/name", Level: Must, Musts: []int{1, 4, 5, 6, 7}, run: name,
			Rule: "GetPluginInfo names the driver by [a-z]([a-z0-9-]{0,61}[a-z0-9])?, its version and the packages it serves, among them " + contract.DriverPackage + ".",
		},
		{
			ID: "identity/stable", Level: Must, Musts: []int{3, 10, 15, 16, 18, 19, 23, 24}, run: stable,
			Rule: "GetPluginInfo and GetCapabilities answer the same for the life of the process.",
		},
		{
			ID: "identity/truthful", Level: Must, Musts: []int{11}, run: truthful,
			Rule: "Every announced feature works, and every RPC of a feature that is not announced answers UNIMPLEMENTED.",
		},
		{
			ID: "identity/offline", Level: Must, Musts: []int{2, 12, 13}, Hooks: true, run: identityOffline,
			Rule: "GetPluginInfo, GetCapabilities and Probe do not call the cloud.",
		},
		{
			ID: "identity/probe-fast", Level: Must, Musts: []int{14, 25}, run: probeFast,
			Rule: "Probe answers within 1 s; its reason is empty when ready, and not otherwise.",
		},
		{
			ID: "identity/health", Level: Should, run: healthy,
			Rule: "The driver serves Check of grpc.health.v1.Health, so that a kubelet can ask for its health; Watch is not needed.",
		},
		{
			ID: "identity/unknown-fields", Level: Must, Musts: []int{34}, run: unknownFields,
			Rule: "A driver ignores fields that it does not know: a newer core sends them.",
		},
		{
			ID: "identity/unknown-features", Level: Must, Musts: []int{68}, run: unknownFeatures,
			Rule: "Unknown core_features are ignored.",
		},
	}
}

func name(ctx context.Context, t *trial) {
	began := time.Now()
	info, err := t.handshake.GetPluginInfo(ctx, pluginInfoRequest())
	if err != nil {
		t.fatalf("GetPluginInfo: %v", err)
	}
	if took := time.Since(began); took > contract.DefaultIdentityDeadline {
		t.errorf("GetPluginInfo took %s", took)
	}
	if err := contract.CheckRevision(info.GetContractRevision()); err != nil {
		t.errorf("contract_revision: %v", err)
	}
	// The shape was judged with the call.
	if !slices.Contains(info.GetApiPackages(), contract.DriverPackage) {
		t.errorf("api_packages %q does not have %s", info.GetApiPackages(), contract.DriverPackage)
	}
}

func stable(ctx context.Context, t *trial) {
	for range 3 {
		info, err := t.handshake.GetPluginInfo(ctx, pluginInfoRequest())
		if err != nil || !proto.Equal(info, t.info) {
			t.errorf("GetPluginInfo answered %v, and now %v (%v)", t.info, info, err)
		}
		capabilities, err := t.identity.GetCapabilities(ctx, &driverv1alpha1.GetCapabilitiesRequest{})
		if err != nil || !proto.Equal(capabilities, t.capabilities) {
			t.errorf("GetCapabilities answered %v, and now %v (%v)", t.capabilities, capabilities, err)
		}
	}
}

func truthful(ctx context.Context, t *trial) {
	for feature, call := range t.callsOf() {
		err := call(ctx)
		unimplemented := status.Code(err) == codes.Unimplemented
		if t.has(feature) == unimplemented {
			t.errorf("%s: announced is %v, and its RPC answers %s", feature, t.has(feature), status.Code(err))
		}
	}
}

// pluginInfoRequest is what a core of this revision asks.
func pluginInfoRequest() *handshakev1.GetPluginInfoRequest {
	return &handshakev1.GetPluginInfoRequest{CoreVersion: "driver-conformance", ContractRevision: contract.Revision}
}

func identityOffline(ctx context.Context, t *trial) {
	before := t.cloud.countAllCalls(ctx)
	stable(ctx, t)
	for range 3 {
		if _, err := t.identity.Probe(ctx, &driverv1alpha1.ProbeRequest{}); err != nil {
			t.fatalf("Probe: %v", err)
		}
	}
	if n := t.cloud.countAllCalls(ctx) - before; n != 0 {
		t.errorf("the cloud was called %d times", n)
	}
}

func probeFast(ctx context.Context, t *trial) {
	for range 10 {
		began := time.Now()
		answer, err := t.identity.Probe(ctx, &driverv1alpha1.ProbeRequest{})
		if err != nil {
			t.fatalf("Probe: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.errorf("Probe took %s", took)
		}
		if !answer.GetReady() {
			t.errorf("Probe says that the driver is not ready: %s", answer.GetReason())
		}
	}
}

func healthy(ctx context.Context, t *trial) {
	answer, err := t.health.Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.errorf("grpc.health.v1 answers %s (%v)", answer.GetStatus(), err)
	}
}

func unknownFields(ctx context.Context, t *trial) {
	m := t.machine()
	m.intend()
	r := m.createRequest()
	later := protowire.AppendString(protowire.AppendTag(nil, 9999, protowire.BytesType), "from a later version")
	r.ProtoReflect().SetUnknown(later)
	r.GetMeta().ProtoReflect().SetUnknown(later)
	r.GetProvider().ProtoReflect().SetUnknown(later)
	if _, err := m.send(ctx, r); err != nil {
		t.errorf("a create with fields of a later version: %v", err)
	}
}

func unknownFeatures(ctx context.Context, t *trial) {
	m := t.machine()
	m.intend()
	r := m.createRequest()
	r.Meta.CoreFeatures = []string{"millwright.conformance/unknown"}
	if _, err := m.send(ctx, r); err != nil {
		t.errorf("a create with an unknown core feature: %v", err)
	}
}

// callsOf are the features that a driver may announce, each with a call that changes nothing.
func (s *session) callsOf() map[driverv1alpha1.Feature]func(context.Context) error {
	meta := &driverv1alpha1.RequestMeta{RequestId: random(), ClusterUid: s.clusterUID}
	bare := &driverv1alpha1.ProviderContext{ProviderSpec: s.config.ProviderSpec}
	provider := &driverv1alpha1.ProviderContext{ProviderSpec: s.config.ProviderSpec, Secrets: s.secrets}
	ref := &driverv1alpha1.MachineRef{Namespace: "conformance", Name: "nobody", Uid: random()}
	return map[driverv1alpha1.Feature]func(context.Context) error{
		driverv1alpha1.Feature_FEATURE_LIST: func(ctx context.Context) error {
			_, err := s.machines.ListMachines(ctx, &driverv1alpha1.ListMachinesRequest{Meta: meta, Provider: provider})
			return err
		},
		driverv1alpha1.Feature_FEATURE_ADOPT: func(ctx context.Context) error {
			id := s.capabilities.GetProviderIdPrefix() + random()
			_, err := s.machines.AdoptMachine(ctx, &driverv1alpha1.AdoptMachineRequest{Meta: meta, Machine: ref, Provider: provider, ProviderId: id})
			return err
		},
		driverv1alpha1.Feature_FEATURE_CONSOLE: func(ctx context.Context) error {
			_, err := s.machines.GetConsoleOutput(ctx, &driverv1alpha1.GetConsoleOutputRequest{Meta: meta, Machine: ref, Provider: provider})
			return err
		},
		driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_SCHEMA: func(ctx context.Context) error {
			_, err := s.specs.GetProviderSpecSchema(ctx, &driverv1alpha1.GetProviderSpecSchemaRequest{})
			return err
		},
		driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_DEFAULT: func(ctx context.Context) error {
			_, err := s.specs.DefaultProviderSpec(ctx, &driverv1alpha1.DefaultProviderSpecRequest{Meta: meta, Provider: bare})
			return err
		},
		driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_VALIDATE: func(ctx context.Context) error {
			_, err := s.specs.ValidateProviderSpec(ctx, &driverv1alpha1.ValidateProviderSpecRequest{Meta: meta, Provider: bare})
			return err
		},
		driverv1alpha1.Feature_FEATURE_INSTANCE_TEMPLATE: func(ctx context.Context) error {
			_, err := s.specs.GetInstanceTemplate(ctx, &driverv1alpha1.GetInstanceTemplateRequest{Meta: meta, Provider: provider})
			return err
		},
	}
}
