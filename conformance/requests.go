package conformance

import (
	"bytes"
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// tooLarge is the reason of requests in which only sizes are exceeded.
const tooLarge = driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE

// rpc is a method of MachineService, and what it has to be asked with.
type rpc struct {
	name    string
	feature driverv1alpha1.Feature
	// request is a complete one, of a machine that nobody has made.
	request proto.Message
	call    func(context.Context, proto.Message) error
	// more are fields that are required beside those of every request.
	more []string
}

// fieldsOfAll are required in a request of any RPC, machineFields in one about a machine.
var (
	fieldsOfAll   = []string{"meta", "meta.request_id", "meta.cluster_uid", "provider", "provider.provider_spec"}
	machineFields = []string{"machine", "machine.namespace", "machine.name", "machine.uid"}
)

// rpcs are the methods that the driver has, each with a request about m.
func rpcs(m *machine) []rpc {
	service, meta, provider := m.t.machines, m.meta(), m.provider()
	var announced []rpc
	for _, one := range []rpc{
		{name: "CreateMachine", request: m.createRequest(), call: calling(service.CreateMachine), more: machineFields},
		{name: "GetMachineStatus", request: &driverv1alpha1.GetMachineStatusRequest{Meta: meta, Machine: m.ref, Provider: provider},
			call: calling(service.GetMachineStatus), more: machineFields},
		{name: "DeleteMachine", request: &driverv1alpha1.DeleteMachineRequest{Meta: meta, Machine: m.ref, Provider: provider},
			call: calling(service.DeleteMachine), more: machineFields},
		{name: "ListMachines", feature: featureList, request: &driverv1alpha1.ListMachinesRequest{Meta: meta, Provider: provider},
			call: calling(service.ListMachines)},
		{name: "AdoptMachine", feature: driverv1alpha1.Feature_FEATURE_ADOPT,
			request: &driverv1alpha1.AdoptMachineRequest{Meta: meta, Machine: m.ref, Provider: provider, ProviderId: m.t.capabilities.GetProviderIdPrefix() + "none"},
			call:    calling(service.AdoptMachine), more: append([]string{"provider_id"}, machineFields...)},
		{name: "GetConsoleOutput", feature: driverv1alpha1.Feature_FEATURE_CONSOLE,
			request: &driverv1alpha1.GetConsoleOutputRequest{Meta: meta, Machine: m.ref, Provider: provider},
			call:    calling(service.GetConsoleOutput), more: machineFields},
	} {
		if m.t.has(one.feature) {
			announced = append(announced, one)
		}
	}
	return announced
}

// calling has a method called with a request of its type.
func calling[Request, Answer proto.Message](
	method func(context.Context, Request, ...grpc.CallOption) (Answer, error),
) func(context.Context, proto.Message) error {
	return func(ctx context.Context, request proto.Message) error {
		_, err := method(ctx, request.(Request))
		return err
	}
}

// missingFields leaves out each field that is required, in a request of each RPC.
func missingFields(ctx context.Context, t *trial) {
	m := t.machine()
	m.intend()
	for _, one := range rpcs(m) {
		for _, field := range append(one.more, fieldsOfAll...) {
			r := proto.Clone(one.request)
			clearField(r.ProtoReflect(), field)
			t.expect(one.name+" without "+field, one.call(ctx, r), specInvalid)
		}
	}
	if t.has(featureList) {
		r := &driverv1alpha1.ListMachinesRequest{Meta: m.meta(), Provider: m.provider(), PageSize: -1}
		_, err := t.machines.ListMachines(ctx, r)
		t.expect("ListMachines with a negative page_size", err, specInvalid)
	}
}

// clearField clears what a path of fields leads to.
func clearField(m protoreflect.Message, path string) {
	name, rest, isIn := strings.Cut(path, ".")
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if isIn {
		clearField(m.Mutable(field).Message(), rest)
		return
	}
	m.Clear(field)
}

// requestTooLarge exceeds each size that does not depend on the driver, in a request of each RPC.
func requestTooLarge(ctx context.Context, t *trial) {
	m := t.machine()
	m.intend()
	large := bytes.Clone(t.config.ProviderSpec)
	large = append(large, bytes.Repeat([]byte(" "), contract.MaxProviderSpecBytes+1-len(large))...)
	for _, one := range rpcs(m) {
		r := proto.Clone(one.request)
		r.(interface {
			GetProvider() *driverv1alpha1.ProviderContext
		}).GetProvider().ProviderSpec = large
		t.expect(one.name+" with a provider_spec of a byte more than 512 KiB", one.call(ctx, r), tooLarge)
		if field := one.request.ProtoReflect().Descriptor().Fields().ByName("last_known_state"); field != nil {
			r = proto.Clone(one.request)
			r.ProtoReflect().Set(field, protoreflect.ValueOfBytes(make([]byte, contract.MaxLastKnownStateBytes+1)))
			t.expect(one.name+" with a last_known_state of a byte more than 64 KiB", one.call(ctx, r), tooLarge)
		}
	}
}
