package contract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

func goodMeta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: "c1"}
}

func goodRef() *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "default", Name: "m", Uid: "u"}
}

func goodProvider() *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(` {"flavor":"small"}`)}
}

func goodMachine() *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{
		Ref: goodRef(), ClusterUid: "c1", ProviderId: "x:///1",
		State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}
}

func fields(found Violations) []string {
	var out []string
	for _, v := range found {
		out = append(out, v.Field)
	}
	return out
}

func TestRequestShapes(t *testing.T) {
	big := bytes.Repeat([]byte("x"), MaxLastKnownStateBytes+1)
	bigSpec := append([]byte(`{"a":"`), append(bytes.Repeat([]byte("x"), MaxProviderSpecBytes), `"}`...)...)
	emptyMachineCall := []string{"meta", "provider", "machine"}
	cases := map[string]struct {
		request any
		want    []string
	}{
		"a create that holds": {&driverv1alpha1.CreateMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()}, nil},
		"an empty create":     {&driverv1alpha1.CreateMachineRequest{}, emptyMachineCall},
		"a nil create":        {(*driverv1alpha1.CreateMachineRequest)(nil), emptyMachineCall},
		"a create with empty parts": {
			&driverv1alpha1.CreateMachineRequest{Meta: &driverv1alpha1.RequestMeta{}, Machine: &driverv1alpha1.MachineRef{}, Provider: &driverv1alpha1.ProviderContext{}},
			[]string{"meta.request_id", "meta.cluster_uid", "provider.provider_spec", "machine.namespace", "machine.name", "machine.uid"},
		},
		"a spec that is an array": {
			&driverv1alpha1.CreateMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`[]`)}},
			[]string{"provider.provider_spec"},
		},
		"a spec that breaks off": {
			&driverv1alpha1.CreateMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"a":`)}},
			[]string{"provider.provider_spec"},
		},
		"a spec that is too large": {
			&driverv1alpha1.CreateMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: bigSpec}},
			[]string{"provider.provider_spec"},
		},
		"a status with too much state": {
			&driverv1alpha1.GetMachineStatusRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider(), LastKnownState: big},
			[]string{"last_known_state"},
		},
		"a delete that holds, without provider_id": {&driverv1alpha1.DeleteMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()}, nil},
		"a console of nobody":                      {&driverv1alpha1.GetConsoleOutputRequest{}, emptyMachineCall},
		"a console with too much state": {
			&driverv1alpha1.GetConsoleOutputRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider(), LastKnownState: big},
			[]string{"last_known_state"},
		},
		"an adoption of nothing": {
			&driverv1alpha1.AdoptMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()},
			[]string{"provider_id"},
		},
		"a list with a negative page": {
			&driverv1alpha1.ListMachinesRequest{Meta: goodMeta(), Provider: goodProvider(), PageSize: -1},
			[]string{"page_size"},
		},
		"defaulting with secrets": {
			&driverv1alpha1.DefaultProviderSpecRequest{Meta: goodMeta(), Provider: &driverv1alpha1.ProviderContext{
				ProviderSpec: []byte(`{}`), Secrets: map[string][]byte{"password": []byte("x")},
			}},
			[]string{"provider.secrets"},
		},
		"a validation that holds":      {&driverv1alpha1.ValidateProviderSpecRequest{Meta: goodMeta(), Provider: goodProvider()}, nil},
		"a template without meta":      {&driverv1alpha1.GetInstanceTemplateRequest{Provider: goodProvider()}, []string{"meta"}},
		"a message that has no rules":  {&driverv1alpha1.ProbeRequest{}, nil},
		"something that is no message": {"probe", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fields(CheckRequest(tc.request))); diff != "" {
				t.Errorf("violated fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerShapes(t *testing.T) {
	failed := goodMachine()
	failed.State, failed.ProviderId = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, ""
	homeless := goodMachine()
	homeless.ProviderId = ""
	spaced := goodMachine()
	spaced.ProviderId = "x:///1 "
	broken := goodMachine()
	broken.ProviderId = "x:///1\n2"
	doubled := goodMachine()
	doubled.DuplicateProviderIds = []string{"x:///2", "", "x:///3 "}
	aliased := goodMachine()
	aliased.ProviderIdAliases = []string{"x://region/1", "1"}
	misnamed := goodMachine()
	misnamed.ProviderIdAliases = []string{"x://region/1", "", "x://region/2 "}
	twice := goodMachine()
	twice.ProviderIdAliases = []string{"x://region/1", "x://region/1"}
	itself := goodMachine()
	itself.ProviderIdAliases = []string{itself.GetProviderId()}
	nameless := goodMachine()
	nameless.State = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
	nameless.ProviderId, nameless.ProviderIdAliases = "", []string{"x://region/1"}
	renamed := goodMachine()
	for i := range MaxProviderIDAliases + 1 {
		renamed.ProviderIdAliases = append(renamed.ProviderIdAliases, fmt.Sprintf("x://%d/1", i))
	}
	endless := goodMachine()
	endless.ProviderId = "x:///" + strings.Repeat("1", MaxProviderIDBytes)
	stateless := goodMachine()
	stateless.State = driverv1alpha1.MachineState_MACHINE_STATE_UNSPECIFIED
	cases := map[string]struct {
		answer any
		want   []string
	}{
		"plugin info that holds": {&handshakev1.GetPluginInfoResponse{Name: "fake", VendorVersion: "1", ApiPackages: []string{DriverPackage}}, nil},
		"plugin info with a name in capitals": {
			&handshakev1.GetPluginInfoResponse{Name: "Fake"}, []string{"name", "vendor_version", "api_packages"},
		},
		"capabilities that hold": {&driverv1alpha1.GetCapabilitiesResponse{
			ProviderIdPrefix: "x:///", Features: []driverv1alpha1.Feature{driverv1alpha1.Feature_FEATURE_LIST},
		}, nil},
		"capabilities out of range": {
			&driverv1alpha1.GetCapabilitiesResponse{
				Features: []driverv1alpha1.Feature{0, driverv1alpha1.Feature_FEATURE_LIST, driverv1alpha1.Feature_FEATURE_LIST},
				Limits:   &driverv1alpha1.Limits{MaxConcurrentRequests: -1, MaxUserDataBytes: -1, CreateSettle: durationpb.New(-1)},
			},
			[]string{
				"provider_id_prefix", "features", "features",
				"limits.max_concurrent_requests", "limits.max_user_data_bytes", "limits.create_settle",
			},
		},
		"capabilities that are too much": {
			&driverv1alpha1.GetCapabilitiesResponse{
				ProviderIdPrefix: strings.Repeat("x", MaxProviderIDBytes+1),
				Limits:           &driverv1alpha1.Limits{CreateSettle: durationpb.New(MaxCreateSettle + 1)},
			},
			[]string{"provider_id_prefix", "limits.create_settle"},
		},
		"capabilities just within bounds": {&driverv1alpha1.GetCapabilitiesResponse{
			ProviderIdPrefix: strings.Repeat("x", MaxProviderIDBytes), Limits: &driverv1alpha1.Limits{CreateSettle: durationpb.New(MaxCreateSettle)},
		}, nil},
		"a prefix that no id can have": {&driverv1alpha1.GetCapabilitiesResponse{ProviderIdPrefix: " x:///"}, []string{"provider_id_prefix"}},
		"a prefix of two lines":        {&driverv1alpha1.GetCapabilitiesResponse{ProviderIdPrefix: "x:///\n"}, []string{"provider_id_prefix"}},
		"ready, with an excuse":        {&driverv1alpha1.ProbeResponse{Ready: true, Reason: "?"}, []string{"reason"}},
		"not ready, without one":       {&driverv1alpha1.ProbeResponse{}, []string{"reason"}},
		"a create that holds":          {&driverv1alpha1.CreateMachineResponse{Machine: goodMachine()}, nil},
		"a create of nothing":          {&driverv1alpha1.CreateMachineResponse{}, []string{"machine"}},
		"running without an id":        {&driverv1alpha1.GetMachineStatusResponse{Machine: homeless}, []string{"machine.provider_id"}},
		"an id with a space":           {&driverv1alpha1.GetMachineStatusResponse{Machine: spaced}, []string{"machine.provider_id"}},
		"an id of two lines":           {&driverv1alpha1.GetMachineStatusResponse{Machine: broken}, []string{"machine.provider_id"}},
		"duplicates that are none":     {&driverv1alpha1.GetMachineStatusResponse{Machine: doubled}, []string{"machine.duplicate_provider_ids", "machine.duplicate_provider_ids"}},
		"other names of the VM":        {&driverv1alpha1.GetMachineStatusResponse{Machine: aliased}, nil},
		"aliases that are none":        {&driverv1alpha1.GetMachineStatusResponse{Machine: misnamed}, []string{"machine.provider_id_aliases", "machine.provider_id_aliases"}},
		"an alias twice":               {&driverv1alpha1.GetMachineStatusResponse{Machine: twice}, []string{"machine.provider_id_aliases"}},
		"an alias that is the id":      {&driverv1alpha1.GetMachineStatusResponse{Machine: itself}, []string{"machine.provider_id_aliases"}},
		"an alias of no VM":            {&driverv1alpha1.GetMachineStatusResponse{Machine: nameless}, []string{"machine.provider_id_aliases"}},
		"too many aliases":             {&driverv1alpha1.GetMachineStatusResponse{Machine: renamed}, []string{"machine.provider_id_aliases"}},
		"an id that is too long":       {&driverv1alpha1.GetMachineStatusResponse{Machine: endless}, []string{"machine.provider_id"}},
		"no state":                     {&driverv1alpha1.GetMachineStatusResponse{Machine: stateless}, []string{"machine.state"}},
		"failed without a reason":      {&driverv1alpha1.ListMachinesResponse{Machines: []*driverv1alpha1.Machine{goodMachine(), failed}}, []string{"machines[1].reason"}},
		"a delete that is complete":    {&driverv1alpha1.DeleteMachineResponse{}, nil},
		"a delete of no one":           {&driverv1alpha1.DeleteMachineResponse{Machine: &driverv1alpha1.Machine{}}, []string{"machine.ref", "machine.cluster_uid", "machine.state"}},
		"an adoption of nothing":       {&driverv1alpha1.AdoptMachineResponse{}, []string{"machine"}},
		"a console that says nothing":  {&driverv1alpha1.GetConsoleOutputResponse{}, nil},
		"a console just within bounds": {&driverv1alpha1.GetConsoleOutputResponse{Output: make([]byte, MaxConsoleBytes)}, nil},
		"a console that is too long":   {&driverv1alpha1.GetConsoleOutputResponse{Output: make([]byte, MaxConsoleBytes+1)}, []string{"output"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fields(CheckAnswer(tc.answer))); diff != "" {
				t.Errorf("violated fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserDataIsMeasuredAgainstTheDriversLimit(t *testing.T) {
	if err := CheckUserData(make([]byte, DefaultMaxUserDataBytes), 0).Err(); err != nil {
		t.Errorf("exactly the default limit is refused: %v", err)
	}
	found := CheckUserData(make([]byte, 11), 10)
	if !found.TooLarge() {
		t.Errorf("one byte over the driver's limit is not TooLarge: %v", found)
	}
	if want := "user_data: has 11 bytes, at most 10 are allowed"; found.Error() != want {
		t.Errorf("Error() = %q, want %q", found.Error(), want)
	}
}

func TestOnlySizesAreTooLarge(t *testing.T) {
	mixed := Violations{{Field: "a", Size: true}, {Field: "b"}}
	if mixed.TooLarge() {
		t.Error("a missing field beside a size is TooLarge; it must be SPEC_INVALID")
	}
	if (Violations{}).TooLarge() || (Violations{}).Err() != nil {
		t.Error("no violations are an error")
	}
}

// A driver that announces millions of features is refused in no time, and in few words.
func TestTooManyFeaturesAreRefusedAtOnce(t *testing.T) {
	many := make([]driverv1alpha1.Feature, 1<<20)
	for i := range many {
		many[i] = driverv1alpha1.Feature(i + 1)
	}
	if found := CheckAnswer(&driverv1alpha1.GetCapabilitiesResponse{ProviderIdPrefix: "x:///", Features: many}); len(found) > 0 {
		t.Errorf("features of the future: %v", found)
	}
	clear(many)
	if found := CheckAnswer(&driverv1alpha1.GetCapabilitiesResponse{ProviderIdPrefix: "x:///", Features: many}); len(found) != 2 {
		t.Errorf("%d violations, want two", len(found))
	}
}
