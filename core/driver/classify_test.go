package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
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
			got := classify(driverName, says(test.code, test.reason, "words"), true)
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
		if got := classify(driverName, status.Error(code, "words"), true); got.Class != want {
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
		got := classify(driverName, err, true)
		if got.Class != instance.OutcomeUnknown || got.ProviderID != "" {
			t.Errorf("%s: got %+v, want an unknown outcome", name, got)
		}
	}
}

func TestARequestThatNeverLeftChangedNothing(t *testing.T) {
	got := classify(driverName, status.Error(codes.Unavailable, "dial unix /x: connection refused"), false)
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
	if diff := cmp.Diff(want, classify(driverName, err, true)); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
	err = says(codes.Internal, "PROVIDER_INTERNAL", "x",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1000 * time.Hour)},
		&driverv1alpha1.PartialState{LastKnownState: make([]byte, contract.MaxPartialStateBytes+1)})
	got := classify(driverName, err, true)
	if got.RetryAfter != maxWait || got.LastKnownState != nil {
		t.Errorf("wait %v and %d bytes of state, want the wait bounded and the state refused", got.RetryAfter, len(got.LastKnownState))
	}
}

func TestAProviderIDThatIsNoneIsDropped(t *testing.T) {
	r := reader{prefix: prefix}
	for id, want := range map[string]string{
		prefix + "1": prefix + "1",
		prefix + strings.Repeat("1", contract.MaxProviderIDBytes-len(prefix)): prefix + strings.Repeat("1", contract.MaxProviderIDBytes-len(prefix)),
		prefix + strings.Repeat("1", contract.MaxProviderIDBytes):             "",
		prefix + "1 ":   "",
		prefix + "1\n2": "",
		"other:///1":    "",
	} {
		err := says(codes.Internal, "PROVIDER_INTERNAL", "half-way", &driverv1alpha1.PartialState{ProviderId: id, LastKnownState: []byte("s")})
		got := r.failure(driverName, err, true)
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

// FuzzClassify feeds statuses as a broken or hostile driver could send them.
func FuzzClassify(f *testing.F) {
	for _, reason := range driverv1alpha1.ErrorReason_name {
		name := strings.TrimPrefix(reason, "ERROR_REASON_")
		code, _ := contract.Code(contract.ParseReason(name))
		f.Add(uint32(code), driverName, name, "words", int64(5), []byte("state"), []byte{}, true)
	}
	f.Add(uint32(5), "other", "MACHINE_NOT_FOUND", "\xff\x00", int64(-1), []byte{}, []byte{0xff}, true)
	f.Add(uint32(99), driverName, "\u0130\u212a_9", strings.Repeat("ü", 4000), int64(1)<<62, make([]byte, 4000), []byte{8}, false)
	f.Fuzz(func(t *testing.T, code uint32, domain, reason, message string, retry int64, state, garbage []byte, left bool) {
		wire := &spb.Status{Code: int32(code & 0xff), Message: strings.ToValidUTF8(message, "?")}
		for _, detail := range []proto.Message{
			&errdetails.ErrorInfo{Domain: strings.ToValidUTF8(domain, "?"), Reason: strings.ToValidUTF8(reason, "?")},
			&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: retry}},
			&driverv1alpha1.PartialState{LastKnownState: state},
		} {
			packed, err := anypb.New(detail)
			if err != nil {
				t.Fatal(err)
			}
			wire.Details = append(wire.Details, packed)
		}
		wire.Details = append(wire.Details, &anypb.Any{TypeUrl: "type.googleapis.com/google.rpc.BadRequest", Value: garbage})
		err := status.ErrorProto(wire)
		if err == nil {
			return
		}
		checkFailure(t, classify(driverName, err, left), codes.Code(code&0xff), domain, left)
	})
}

func checkFailure(t *testing.T, f *instance.Failure, code codes.Code, domain string, left bool) {
	t.Helper()
	if !conditionWord.MatchString(f.Reason) || len(f.Reason) > maxReason {
		t.Errorf("the reason %q is not fit for a condition", f.Reason)
	}
	if !utf8.ValidString(f.Message) || len(f.Message) > maxMessage || strings.ContainsAny(f.Message, "\n\x00") {
		t.Errorf("the message %q is not fit for a condition", f.Message)
	}
	if f.RetryAfter < 0 || f.RetryAfter > maxWait || len(f.LastKnownState) > contract.MaxPartialStateBytes {
		t.Errorf("wait %v or state of %d bytes out of bounds", f.RetryAfter, len(f.LastKnownState))
	}
	spoke := domain == driverName
	if !spoke && left && f.Class != instance.OutcomeUnknown && code != codes.Unimplemented {
		t.Errorf("class %s of what the driver did not say", f.Class)
	}
	terminal := f.Class == instance.SpecInvalid || f.Class == instance.Conflict || f.Class == instance.NotFound
	if terminal && code != codes.InvalidArgument && code != codes.AlreadyExists && code != codes.NotFound {
		t.Errorf("code %s became %s", code, f.Class)
	}
}
