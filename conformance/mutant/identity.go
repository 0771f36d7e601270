package mutant

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

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
		{"wrong-name", "identity/name", answered(func(a *info) { a.Name = "Not A Name" })},
		{"no-version", "identity/name", answered(func(a *info) { a.VendorVersion = "" })},
		{"another-package", "identity/name", answered(func(a *info) { a.ApiPackages = []string{"millwright.driver.v0"} })},
		{"changing-info", "identity/stable", counted(func(a *info, n int64) {
			a.Manifest = map[string]string{"calls": strconv.FormatInt(n, 10)}
		})},
		{"changing-capabilities", "identity/stable", counted(func(a *capabilities, n int64) {
			a.Limits = &driverv1alpha1.Limits{CreateSettle: durationpb.New(time.Duration(n))}
		})},
		{"hidden-feature", "identity/truthful", answered(func(a *capabilities) {
			a.Features = slices.DeleteFunc(a.GetFeatures(), func(f driverv1alpha1.Feature) bool { return f == driverv1alpha1.Feature_FEATURE_LIST })
		})},
		{"empty-promise", "identity/truthful", answered(func(a *capabilities) {
			a.Features = append(a.GetFeatures(), driverv1alpha1.Feature_FEATURE_INSTANCE_TEMPLATE)
		})},
		{"slow-probe", "identity/probe-fast", counted(func(_ *driverv1alpha1.ProbeResponse, n int64) {
			if n == 1 {
				<-time.After(1100 * time.Millisecond)
			}
		})},
		{"unsaid-probe", "identity/probe-fast", answered(func(a *driverv1alpha1.ProbeResponse) { a.Ready = false })},
		{"no-health", "identity/health", without("/grpc.health.v1.Health/Check")},
		{"strict-about-fields", "identity/unknown-fields", refused(func(r proto.Message) error {
			if len(r.ProtoReflect().GetUnknown()) > 0 {
				return fail(specInvalid, "unknown field")
			}
			return nil
		})},
		{"strict-about-features", "identity/unknown-features", refused(func(r *createReq) error {
			if len(r.GetMeta().GetCoreFeatures()) > 0 {
				return fail(specInvalid, "unknown feature")
			}
			return nil
		})},
	}
}
