package mutant

import (
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

type (
	info         = handshakev1.GetPluginInfoResponse
	capabilities = driverv1alpha1.GetCapabilitiesResponse
	createReq    = driverv1alpha1.CreateMachineRequest
	getReq       = driverv1alpha1.GetMachineStatusRequest
	deleteReq    = driverv1alpha1.DeleteMachineRequest
	listReq      = driverv1alpha1.ListMachinesRequest
	machine      = driverv1alpha1.Machine
)

func ofIdentity() []Mutant {
	return []Mutant{
		{Name: "wrong-name", Check: "identity/name", mutate: answered(func(a *info) { a.Name = "Not A Name" })},
		{Name: "no-version", Check: "identity/name", mutate: answered(func(a *info) { a.VendorVersion = "" })},
		{Name: "another-package", Check: "identity/name", mutate: answered(func(a *info) { a.ApiPackages = []string{"millwright.driver.v0"} })},
		{Name: "changing-info", Check: "identity/stable", mutate: counted(func(a *info, n int64) {
			a.Manifest = map[string]string{"calls": strconv.FormatInt(n, 10)}
		})},
		{Name: "changing-capabilities", Check: "identity/stable", mutate: counted(func(a *capabilities, n int64) {
			a.Limits = &driverv1alpha1.Limits{CreateSettle: durationpb.New(time.Duration(n))}
		})},
		{Name: "changing-cloud-controller", Check: "identity/stable", mutate: counted(func(a *capabilities, n int64) {
			a.NoCloudController = n%2 == 0
		})},
		{Name: "endless-settle", Check: "identity/stable", mutate: answered(func(a *capabilities) {
			a.Limits = &driverv1alpha1.Limits{CreateSettle: durationpb.New(contract.MaxCreateSettle + time.Second)}
		})},
		{Name: "hidden-feature", Check: "identity/truthful", mutate: answered(func(a *capabilities) {
			a.Features = slices.DeleteFunc(a.GetFeatures(), func(f driverv1alpha1.Feature) bool { return f == driverv1alpha1.Feature_FEATURE_LIST })
		})},
		{Name: "empty-promise", Check: "identity/truthful", mutate: without(driverv1alpha1.MachineService_AdoptMachine_FullMethodName)},
		{Name: "introduced-by-the-cloud", Check: "identity/offline", mutate: introducedByTheCloud},
		{Name: "of-a-later-contract", Check: "identity/name", mutate: answered(func(a *info) { a.ContractRevision = contract.Revision + 2 })},
		{Name: "slow-probe", Check: "identity/probe-fast", mutate: counted(func(_ *driverv1alpha1.ProbeResponse, n int64) {
			if n == 1 {
				<-time.After(1100 * time.Millisecond)
			}
		})},
		{Name: "unsaid-probe", Check: "identity/probe-fast", mutate: answered(func(a *driverv1alpha1.ProbeResponse) { a.Ready = false })},
		{Name: "no-health", Check: "identity/health", mutate: without("/grpc.health.v1.Health/Check")},
		{Name: "strict-about-fields", Check: "identity/unknown-fields", mutate: refused(func(r proto.Message) error {
			if len(r.ProtoReflect().GetUnknown()) > 0 {
				return fail(specInvalid, "unknown field")
			}
			return nil
		})},
		{Name: "strict-about-features", Check: "identity/unknown-features", mutate: refused(func(r *createReq) error {
			if len(r.GetMeta().GetCoreFeatures()) > 0 {
				return fail(specInvalid, "unknown feature")
			}
			return nil
		})},
	}
}

// introducedByTheCloud looks into the cloud to say who it is.
func introducedByTheCloud(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		if _, ok := request.(*driverv1alpha1.GetCapabilitiesRequest); ok {
			// Whatever it answers, the cloud was called.
			_, _ = next(ctx, driverv1alpha1.MachineService_ListMachines_FullMethodName, &listReq{
				Meta:     &driverv1alpha1.RequestMeta{RequestId: "introduction", ClusterUid: "introduction"},
				Provider: &driverv1alpha1.ProviderContext{ProviderSpec: []byte("{}")},
			})
		}
		return next(ctx, method, request)
	}
}
