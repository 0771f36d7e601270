package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestClassifyFollowsTheContractsTable(t *testing.T) {
	for _, test := range []struct {
		code   codes.Code
		reason string
		want   instance.Class
	}{
		{codes.Canceled, "ANY", instance.OutcomeUnknown},
		{codes.DeadlineExceeded, "ANY", instance.OutcomeUnknown},
		{codes.Unavailable, "ANY", instance.OutcomeUnknown},
		{codes.Unknown, "ANY", instance.OutcomeUnknown},
		{codes.Code(42), "ANY", instance.OutcomeUnknown},
		{codes.InvalidArgument, "SPEC_INVALID", instance.SpecInvalid},
		{codes.InvalidArgument, "REQUEST_TOO_LARGE", instance.SpecInvalid},
		{codes.InvalidArgument, "MY_OWN", instance.SpecInvalid},
		{codes.InvalidArgument, "PAGE_TOKEN_EXPIRED", instance.Internal},
		{codes.NotFound, "MACHINE_NOT_FOUND", instance.NotFound},
		{codes.NotFound, "MY_OWN", instance.NotFound},
		{codes.AlreadyExists, "SPEC_CONFLICT", instance.Conflict},
		{codes.AlreadyExists, "NAME_TAKEN", instance.Conflict},
		{codes.Unauthenticated, "CREDENTIALS_INVALID", instance.Credentials},
		{codes.PermissionDenied, "PERMISSION_MISSING", instance.Credentials},
		{codes.ResourceExhausted, "QUOTA_EXCEEDED", instance.Quota},
		{codes.ResourceExhausted, "CAPACITY_UNAVAILABLE", instance.Capacity},
		{codes.ResourceExhausted, "RATE_LIMITED", instance.RateLimited},
		{codes.ResourceExhausted, "MY_OWN", instance.Quota},
		{codes.FailedPrecondition, "DEPENDENCY_NOT_FOUND", instance.Precondition},
		{codes.FailedPrecondition, "DELETION_PROTECTED", instance.Precondition},
		{codes.FailedPrecondition, "VOLUMES_ATTACHED", instance.Precondition},
		{codes.FailedPrecondition, "MY_OWN", instance.Precondition},
		{codes.FailedPrecondition, "ACCOUNT_CHANGED", instance.AccountChanged},
		{codes.FailedPrecondition, "STALE_EPOCH", instance.StaleEpoch},
		{codes.Aborted, "OPERATION_PENDING", instance.Pending},
		{codes.Unimplemented, "ANY", instance.Unimplemented},
		{codes.OutOfRange, "MY_OWN", instance.Internal},
		{codes.Internal, "PROVIDER_INTERNAL", instance.Internal},
		{codes.DataLoss, "MY_OWN", instance.DataLoss},
	} {
		t.Run(fmt.Sprintf("%s %s", test.code, test.reason), func(t *testing.T) {
			got := Classify(driverName, says(test.code, test.reason, "words"), true)
			if got.Class != test.want || got.Message != "words" {
				t.Errorf("got %+v, want class %s with the driver's words", got, test.want)
			}
		})
	}
}

func TestWithoutErrorInfoTheOutcomeIsUnknown(t *testing.T) {
	foreign, err := status.New(codes.NotFound, "gone").WithDetails(
		&errdetails.ErrorInfo{Domain: "proxy.example", Reason: "MACHINE_NOT_FOUND"},
		&driverv1alpha1.PartialState{ProviderId: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want := instance.OutcomeUnknown
		if code == codes.Unimplemented {
			want = instance.Unimplemented
		}
		if got := Classify(driverName, status.Error(code, "words"), true); got.Class != want {
			t.Errorf("%s without ErrorInfo is %s, want %s", code, got.Class, want)
		}
	}
	for name, err := range map[string]error{
		"an ErrorInfo of another domain": foreign.Err(),
		"no status at all":               errors.New("boom"),
		"a cancelled context":            context.Canceled,
		"a known reason of another code": says(codes.InvalidArgument, "RATE_LIMITED", "words"),
		"not found, but of another code": says(codes.NotFound, "PROVIDER_INTERNAL", "words"),
		"an ErrorInfo without a reason":  says(codes.NotFound, "", "words"),
	} {
		got := Classify(driverName, err, true)
		if got.Class != instance.OutcomeUnknown || got.ProviderID != "" {
			t.Errorf("%s: got %+v, want an unknown outcome", name, got)
		}
	}
}

func TestARequestThatNeverLeftChangedNothing(t *testing.T) {
	got := Classify(driverName, status.Error(codes.Unavailable, "dial unix /x: connection refused"), false)
	want := &instance.Failure{Class: instance.Unavailable, Reason: "Unavailable", Message: "the request did not reach the driver"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
}

func TestClassifyReadsTheDetails(t *testing.T) {
	err := says(codes.InvalidArgument, "SPEC_INVALID", "bad\nspec ",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "flavor", Description: "is unknown"}}},
		&driverv1alpha1.PartialState{ProviderId: "p", LastKnownState: []byte("s")},
		&errdetails.Help{})
	want := &instance.Failure{
		Class: instance.SpecInvalid, Reason: "SpecInvalid", Message: "bad spec",
		Fields:     []instance.Field{{Path: "flavor", Description: "is unknown"}},
		RetryAfter: 7 * time.Second, ProviderID: "p", LastKnownState: []byte("s"),
	}
	if diff := cmp.Diff(want, Classify(driverName, err, true)); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
	err = says(codes.Internal, "PROVIDER_INTERNAL", "x",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1000 * time.Hour)},
		&driverv1alpha1.PartialState{LastKnownState: make([]byte, contract.MaxPartialStateBytes+1)})
	got := Classify(driverName, err, true)
	if got.RetryAfter != MaxWait || got.LastKnownState != nil {
		t.Errorf("wait %v and %d bytes of state, want the wait bounded and the state refused", got.RetryAfter, len(got.LastKnownState))
	}
}

func TestAProviderIDThatIsNoneIsDropped(t *testing.T) {
	r := Reader{Driver: driverName, Prefix: prefix}
	for id, want := range map[string]string{
		prefix + "1": prefix + "1",
		prefix + strings.Repeat("1", contract.MaxProviderIDBytes-len(prefix)): prefix + strings.Repeat("1", contract.MaxProviderIDBytes-len(prefix)),
		prefix + strings.Repeat("1", contract.MaxProviderIDBytes):             "",
		prefix + "1 ":   "",
		prefix + "1\n2": "",
		"other:///1":    "",
	} {
		err := says(codes.Internal, "PROVIDER_INTERNAL", "half-way", &driverv1alpha1.PartialState{ProviderId: id, LastKnownState: []byte("s")})
		got := r.Failure(err, true)
		if got.ProviderID != want || string(got.LastKnownState) != "s" {
			t.Errorf("%.40q of %d bytes became %.40q with the state %q", id, len(id), got.ProviderID, got.LastKnownState)
		}
	}
}

func TestWordsAreFitForConditions(t *testing.T) {
	for in, want := range map[string]string{
		"QUOTA_EXCEEDED": "QuotaExceeded", "quota exceeded": "QuotaExceeded", "NoValidHost": "NoValidHost",
		"HTTP_429": "Http429", "429_TOO_MANY": "TooMany", "": "", "!!": "", "éa": "A",
	} {
		if got := word(in); got != want {
			t.Errorf("word(%q) = %q, want %q", in, got, want)
		}
	}
}
