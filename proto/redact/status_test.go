package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const canary = "canary-7f3a"

func TestStatusKeepsWhatCoreActsOn(t *testing.T) {
	// The Secret also holds what is part of the driver's name and of its ids, and a reason of the
	// contract.
	secrets := Of(with(canary, "sawmill", "QUOTA_EXCEEDED"))
	s, err := status.New(codes.ResourceExhausted, "sawmill says: "+canary).WithDetails(
		&errdetails.ErrorInfo{Domain: "sawmill", Reason: "QUOTA_EXCEEDED", Metadata: map[string]string{"login": canary}},
		&driverv1alpha1.PartialState{ProviderId: "sawmill:///1", LastKnownState: []byte("nic " + canary)},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(7)},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "auth." + canary, Description: canary + "!"}}},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Url: "https://x/?" + canary}}},
		&errdetails.DebugInfo{StackEntries: []string{"a", canary}},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		&errdetails.ErrorInfo{Domain: "sawmill", Reason: "QUOTA_EXCEEDED"},
		&driverv1alpha1.PartialState{ProviderId: "sawmill:///1"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(7)},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "auth." + Mark, Description: Mark + "!"}}},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Url: "https://x/?" + Mark}}},
		&errdetails.DebugInfo{StackEntries: []string{"a", Mark}},
	}
	got := secrets.Status(s)
	if diff := cmp.Diff(want, got.Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if got.Code() != codes.ResourceExhausted || got.Message() != "[redacted] says: [redacted]" {
		t.Errorf("%s: %q", got.Code(), got.Message())
	}
	if s.Message() != "sawmill says: "+canary {
		t.Error("the status itself was changed")
	}
}

func TestStatusLeavesOutWhatItCannotClean(t *testing.T) {
	pack := func(detail proto.Message) *anypb.Any {
		packed, err := anypb.New(detail)
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	unknown := append(pack(&errdetails.ErrorInfo{Domain: "d", Reason: "MINE"}).GetValue(), 0xfa, 0x3f, byte(len(canary)))
	s := status.FromProto(&spb.Status{Code: int32(codes.Internal), Details: []*anypb.Any{
		{TypeUrl: "type.googleapis.com/nobody.Knows", Value: []byte(canary)},
		{TypeUrl: "type.googleapis.com/google.rpc.BadRequest", Value: []byte("\xff" + canary)},
		{TypeUrl: "type.googleapis.com/google.rpc.ErrorInfo", Value: append(unknown, canary...)},
		pack(&errdetails.ErrorInfo{Domain: "d", Reason: "ITS_" + canary}),
		pack(&driverv1alpha1.PartialState{LastKnownState: []byte(canary)}),
		pack(&anypb.Any{TypeUrl: "x/y", Value: []byte(canary)}),
	}})
	got := Of(with(canary)).Status(s)
	want := []any{
		&errdetails.ErrorInfo{Domain: "d", Reason: "MINE"}, &errdetails.ErrorInfo{Domain: "d", Reason: "ITS_" + Mark}, &anypb.Any{TypeUrl: "x/y"},
	}
	if diff := cmp.Diff(want, got.Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if same := Of(with()).Status(s); same != s {
		t.Error("a status without secrets was changed")
	}
	long := Of(with(canary)).Status(status.New(codes.Internal, strings.Repeat("ä", maxMessage)+canary))
	if got := long.Message(); len(got) > maxMessage || strings.Contains(got, canary) {
		t.Errorf("a message of %d bytes is looked through", len(got))
	}
}

func TestAnswer(t *testing.T) {
	machine := func(say string) *driverv1alpha1.Machine {
		return &driverv1alpha1.Machine{ProviderId: "sawmill:///1", NodeName: "n", Reason: say, Message: "it says " + say}
	}
	secrets := Of(with(canary, "sawmill"))
	for name, tc := range map[string]struct{ answer, want any }{
		"nothing":           {nil, nil},
		"no message":        {"canary", "canary"},
		"no secret":         {&driverv1alpha1.CreateMachineResponse{Machine: machine("no")}, &driverv1alpha1.CreateMachineResponse{Machine: machine("no")}},
		"a machine":         {&driverv1alpha1.CreateMachineResponse{Machine: machine(canary)}, &driverv1alpha1.CreateMachineResponse{Machine: machine(Mark)}},
		"no machine":        {&driverv1alpha1.DeleteMachineResponse{}, &driverv1alpha1.DeleteMachineResponse{}},
		"machines":          {&driverv1alpha1.ListMachinesResponse{Machines: []*driverv1alpha1.Machine{machine("a"), machine(canary)}}, &driverv1alpha1.ListMachinesResponse{Machines: []*driverv1alpha1.Machine{machine("a"), machine(Mark)}}},
		"a probe":           {&driverv1alpha1.ProbeResponse{Reason: canary}, &driverv1alpha1.ProbeResponse{Reason: Mark}},
		"an empty probe":    {(*driverv1alpha1.ProbeResponse)(nil), (*driverv1alpha1.ProbeResponse)(nil)},
		"what is wrong":     {&driverv1alpha1.ValidateProviderSpecResponse{Violations: []*driverv1alpha1.FieldViolation{{Field: canary, Description: canary}}}, &driverv1alpha1.ValidateProviderSpecResponse{Violations: []*driverv1alpha1.FieldViolation{{Field: Mark, Description: Mark}}}},
		"something without": {&driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: []byte(canary)}, &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: []byte(canary)}},
	} {
		if diff := cmp.Diff(tc.want, secrets.Answer(tc.answer), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	original := &driverv1alpha1.CreateMachineResponse{Machine: machine(canary)}
	if clean := secrets.Answer(original); clean == any(original) || original.GetMachine().GetReason() != canary {
		t.Error("the driver's own machine was changed")
	}
}
