package sdk

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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	quotaExceeded = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
	internal      = driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
)

// raw is a status as a driver could make it without this package.
func raw(t *testing.T, code codes.Code, message string, details ...protoadapt.MessageV1) error {
	t.Helper()
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

func TestOutcomes(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	open := context.Background()
	own := func(reason string) *errdetails.ErrorInfo {
		return &errdetails.ErrorInfo{Domain: "sawmill", Reason: reason}
	}
	cases := map[string]struct {
		ctx     context.Context
		err     error
		code    codes.Code
		reason  string // empty: no ErrorInfo, the outcome is unknown
		message string
	}{
		"an error of the contract": {open, NewError(quotaExceeded, "2 of 2 VMs"), codes.ResourceExhausted, "QUOTA_EXCEEDED", "2 of 2 VMs"},
		"one that is wrapped":      {open, fmt.Errorf("create NIC: %w", NewError(quotaExceeded, "full")), codes.ResourceExhausted, "QUOTA_EXCEEDED", "create NIC: full"},
		"one of a call that ended": {over, NewError(quotaExceeded, "full"), codes.ResourceExhausted, "QUOTA_EXCEEDED", "full"},
		"an unknown reason":        {open, NewError(99, "what?"), codes.Internal, "PROVIDER_INTERNAL", "what?"},
		"a cloud that is silent":   {open, NewUnknownOutcome("no answer"), codes.Unavailable, "OUTCOME_UNKNOWN", "no answer"},
		"any error":                {open, errors.New("oops"), codes.Internal, "PROVIDER_INTERNAL", "oops"},
		"an error without a text":  {open, errors.New(""), codes.Internal, "PROVIDER_INTERNAL", "the driver failed and does not say why"},

		"the call was cancelled":           {over, fmt.Errorf("create VM: %w", context.Canceled), codes.Canceled, "", "context canceled"},
		"the call was too late":            {late, fmt.Errorf("create VM: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "", "context deadline exceeded"},
		"a cloud's gRPC call was too late": {late, status.Error(codes.DeadlineExceeded, "late"), codes.DeadlineExceeded, "", "context deadline exceeded"},
		"the call ended, for its own part": {over, errors.New("disk full"), codes.Internal, "PROVIDER_INTERNAL", "disk full"},
		"a time limit of the driver's own": {open, fmt.Errorf("create VM: %w", context.DeadlineExceeded), codes.Internal, "PROVIDER_INTERNAL", "create VM: context deadline exceeded"},

		"a cloud's bare status":           {open, status.Error(codes.NotFound, "no such flavor"), codes.Internal, "PROVIDER_INTERNAL", "no such flavor"},
		"a cloud's UNIMPLEMENTED":         {open, status.Error(codes.Unimplemented, "unknown method"), codes.Internal, "PROVIDER_INTERNAL", "unknown method"},
		"a cloud's own ErrorInfo":         {open, raw(t, codes.NotFound, "gone", &errdetails.ErrorInfo{Domain: "cloud.example.com", Reason: "MACHINE_NOT_FOUND"}), codes.Internal, "PROVIDER_INTERNAL", "gone"},
		"an ErrorInfo without a reason":   {open, raw(t, codes.NotFound, "gone", own("")), codes.Internal, "PROVIDER_INTERNAL", "gone"},
		"a reason under a foreign code":   {open, raw(t, codes.Aborted, "gone", own("MACHINE_NOT_FOUND")), codes.Internal, "PROVIDER_INTERNAL", "gone"},
		"a status as the contract wants":  {open, raw(t, codes.NotFound, "gone", own("MACHINE_NOT_FOUND")), codes.NotFound, "MACHINE_NOT_FOUND", "gone"},
		"a reason of the driver's own":    {open, raw(t, codes.DataLoss, "disk lost", own("DISK_LOST")), codes.DataLoss, "DISK_LOST", "disk lost"},
		"its own UNIMPLEMENTED":           {open, raw(t, codes.Unimplemented, "later", own("LATER")), codes.Internal, "PROVIDER_INTERNAL", "later"},
		"a text that is not UTF-8":        {open, errors.New("caf\xe9"), codes.Internal, "PROVIDER_INTERNAL", "caf\uFFFD"},
		"a method that is not offered":    {open, notOffered("ListMachines"), codes.Unimplemented, "", "this driver does not offer ListMachines"},
		"an OK that is none":              {open, raw(t, codes.Unknown, "odd", own("ODD")), codes.Unknown, "ODD", "odd"},
		"a mismatch hidden by a neighbor": {open, raw(t, codes.NotFound, "gone", &errdetails.ErrorInfo{Domain: "other", Reason: "X"}, own("MACHINE_NOT_FOUND")), codes.NotFound, "MACHINE_NOT_FOUND", "gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := outcome(tc.ctx, "sawmill", tc.err, nil)
			if s.Code() != tc.code || s.Message() != tc.message {
				t.Errorf("outcome is %s %q, want %s %q", s.Code(), s.Message(), tc.code, tc.message)
			}
			var infos []*errdetails.ErrorInfo
			for _, detail := range s.Details() {
				if info, ok := detail.(*errdetails.ErrorInfo); ok {
					infos = append(infos, info)
				}
			}
			var want []*errdetails.ErrorInfo
			if tc.reason != "" {
				want = append(want, own(tc.reason))
			}
			if diff := cmp.Diff(want, infos, protocmp.Transform()); diff != "" {
				t.Errorf("ErrorInfo (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsCarryTheirDetails(t *testing.T) {
	err := NewError(quotaExceeded, "full",
		WithQuota("project p", "2 of 2 VMs"),
		WithField("flavor", "is too large"), WithField("image", "is \xff"),
		WithRetryAfter(3*time.Second),
		WithPartialState("sawmill:///1", []byte("nic-7")))
	want := []any{
		&errdetails.ErrorInfo{Domain: "sawmill", Reason: "QUOTA_EXCEEDED"},
		&driverv1alpha1.PartialState{ProviderId: "sawmill:///1", LastKnownState: []byte("nic-7")},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "flavor", Description: "is too large"}, {Field: "image", Description: "is \uFFFD"},
		}},
		&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "project p", Description: "2 of 2 VMs"}}},
	}
	if diff := cmp.Diff(want, outcome(t.Context(), "sawmill", err, nil).Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if code := status.Code(err); code != codes.ResourceExhausted {
		t.Errorf("a driver's own test sees the code %s, want RESOURCE_EXHAUSTED", code)
	}
}

func TestDetailsAreAdded(t *testing.T) {
	first := NewError(quotaExceeded, "full", WithQuota("project p", "2 of 2 VMs"))
	more := AddDetails(fmt.Errorf("create VM: %w", first), WithPartialState("", []byte("nic-7")), WithQuota("host", "none"))
	want := status.Convert(NewError(quotaExceeded, "create VM: full", WithQuota("project p", "2 of 2 VMs"), WithQuota("host", "none"),
		WithPartialState("", []byte("nic-7"))))
	if diff := cmp.Diff(want.Proto(), status.Convert(more).Proto(), protocmp.Transform()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if n := len(status.Convert(first).Details()); n != 2 {
		t.Errorf("the first error has %d details now", n)
	}
	if plain := errors.New("oops"); !errors.Is(AddDetails(plain, WithRetryAfter(time.Second)), plain) || AddDetails(nil) != nil {
		t.Error("what is no error of the contract has changed")
	}
}

func TestPartialStateThatIsTooLongIsLeftOut(t *testing.T) {
	err := NewError(internal, "half-way", WithPartialState("sawmill:///1", make([]byte, contract.MaxPartialStateBytes+1)))
	got := outcome(t.Context(), "sawmill", err, nil).Details()[1]
	if diff := cmp.Diff(&driverv1alpha1.PartialState{ProviderId: "sawmill:///1"}, got, protocmp.Transform()); diff != "" {
		t.Errorf("PartialState (-want +got):\n%s", diff)
	}
}

// What core acts on survives all that people read.
func TestTheWorthiestDetailsStay(t *testing.T) {
	var options []ErrorOption
	for i := range 200 {
		options = append(options, WithField(fmt.Sprintf("f[%d]", i), strings.Repeat("é", 400)),
			WithQuota(fmt.Sprintf("q%d", i), strings.Repeat("q", 400)))
	}
	options = append(options, WithRetryAfter(time.Second), WithPartialState("sawmill:///1", make([]byte, contract.MaxPartialStateBytes)))
	s := outcome(t.Context(), "sawmill", NewError(quotaExceeded, strings.Repeat("m", 9000), options...), nil)
	if size := proto.Size(s.Proto()); size > contract.MaxStatusBytes {
		t.Errorf("the status has %d bytes, at most %d are allowed", size, contract.MaxStatusBytes)
	}
	var kinds []string
	for _, detail := range s.Details() {
		kinds = append(kinds, string(detail.(proto.Message).ProtoReflect().Descriptor().Name()))
	}
	if diff := cmp.Diff([]string{"ErrorInfo", "PartialState", "RetryInfo", "BadRequest", "QuotaFailure"}, kinds); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if len(s.Message()) < minMessage/2 {
		t.Errorf("only %d bytes of the message are left", len(s.Message()))
	}
}

func TestAnyErrorBecomesAStatusThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.StringN(0, 30, -1).Draw(t, "text"), rapid.SampledFrom([]int{1, 1, 100}).Draw(t, "times"))
		})
		var options []ErrorOption
		for range rapid.IntRange(0, 40).Draw(t, "fields") {
			options = append(options, WithField(text.Draw(t, "field"), text.Draw(t, "description")))
		}
		for range rapid.IntRange(0, 10).Draw(t, "quotas") {
			options = append(options, WithQuota(text.Draw(t, "subject"), text.Draw(t, "description")))
		}
		if rapid.Bool().Draw(t, "partial") {
			options = append(options, WithPartialState(text.Draw(t, "id"), make([]byte, rapid.IntRange(0, 4096).Draw(t, "state"))))
		}
		err := NewError(quotaExceeded, text.Draw(t, "message"), options...)
		if rapid.Bool().Draw(t, "raw") {
			s, _ := status.New(codes.NotFound, text.Draw(t, "message")).WithDetails(&errdetails.ErrorInfo{
				Domain: "sawmill", Reason: "R" + text.Draw(t, "reason"), Metadata: map[string]string{"k": text.Draw(t, "metadata")},
			})
			err = s.Err()
		}
		s := outcome(context.Background(), "sawmill", err, nil)
		if size := proto.Size(s.Proto()); size > contract.MaxStatusBytes {
			t.Fatalf("the status has %d bytes", size)
		}
		if !utf8.ValidString(s.Message()) {
			t.Fatalf("the message is not UTF-8: %q", s.Message())
		}
		info, ok := s.Details()[0].(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != "sawmill" || info.GetReason() == "" {
			t.Fatalf("the first detail is %v, want the driver's ErrorInfo", s.Details()[0])
		}
	})
}

// An error is often a package variable of a driver: two calls may end with it at once.
func TestAnErrorCanEndManyCallsAtOnce(t *testing.T) {
	var options []ErrorOption
	for range maxViolations * 2 {
		options = append(options, WithField("f", strings.Repeat("d", 400)))
	}
	shared := NewError(quotaExceeded, "full", options...)
	want := outcome(t.Context(), "sawmill", shared, nil)
	got := make(chan *status.Status)
	for range 8 {
		go func() { got <- outcome(context.Background(), "sawmill", shared, nil) }()
	}
	for range 8 {
		if diff := cmp.Diff(want.Proto(), (<-got).Proto(), protocmp.Transform()); diff != "" {
			t.Errorf("the error has changed (-want +got):\n%s", diff)
		}
	}
}
