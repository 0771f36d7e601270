package wire

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
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

// wireStatus is a status with these details; one that is no message stands as garbage.
func wireStatus(tb testing.TB, code uint32, message string, details ...proto.Message) *spb.Status {
	tb.Helper()
	wire := &spb.Status{Code: int32(code & 0xff), Message: message}
	for _, detail := range details {
		packed, err := anypb.New(detail)
		if err != nil {
			tb.Fatal(err)
		}
		wire.Details = append(wire.Details, packed)
	}
	return wire
}

// FuzzClassify feeds statuses as a broken or hostile driver could make them.
func FuzzClassify(f *testing.F) {
	for _, reason := range driverv1alpha1.ErrorReason_name {
		name := strings.TrimPrefix(reason, "ERROR_REASON_")
		code, _ := contract.Code(contract.ParseReason(name))
		f.Add(uint32(code), driverName, name, "words", int64(5), []byte("state"), []byte{}, true)
	}
	f.Add(uint32(5), "other", "MACHINE_NOT_FOUND", "\xff\x00", int64(-1), []byte{}, []byte{0xff}, true)
	f.Add(uint32(99), driverName, "\u0130\u212a_9", strings.Repeat("ü", 4000), int64(1)<<62, make([]byte, 4000), []byte{8}, false)
	f.Add(uint32(12), driverName, "429", "\u202e\u2028 \u00a0", int64(1), []byte{}, []byte{}, true)
	f.Fuzz(func(t *testing.T, code uint32, domain, reason, message string, retry int64, state, garbage []byte, left bool) {
		wire := wireStatus(t, code, message,
			&errdetails.ErrorInfo{Domain: strings.ToValidUTF8(domain, "?"), Reason: strings.ToValidUTF8(reason, "?")},
			&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: retry}},
			&driverv1alpha1.PartialState{LastKnownState: state, ProviderId: strings.ToValidUTF8(message, "?")},
		)
		wire.Details = append(wire.Details, &anypb.Any{TypeUrl: "type.googleapis.com/google.rpc.BadRequest", Value: garbage})
		checkClassified(t, wire, left)
	})
}

// FuzzClassifyWire feeds any bytes in the place of the status that a driver sends.
func FuzzClassifyWire(f *testing.F) {
	info := &errdetails.ErrorInfo{Domain: driverName, Reason: "QUOTA_EXCEEDED"}
	for _, wire := range []*spb.Status{
		wireStatus(f, 8, "full", info, &errdetails.RetryInfo{RetryDelay: durationpb.New(MaxWait)}),
		wireStatus(f, 3, "wrong", &errdetails.ErrorInfo{Domain: driverName, Reason: "SPEC_INVALID"}, &errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "a.b", Description: "is wrong"}},
		}),
		wireStatus(f, 5, "gone", info, &errdetails.ErrorInfo{Domain: driverName, Reason: "MACHINE_NOT_FOUND"}),
		wireStatus(f, 13, "half-way", &errdetails.ErrorInfo{Domain: driverName, Reason: "x"},
			&driverv1alpha1.PartialState{ProviderId: prefix + "1", LastKnownState: []byte("s")}),
		wireStatus(f, 14, "nobody said so"),
		wireStatus(f, 6, "somebody else did", &errdetails.ErrorInfo{Domain: "proxy", Reason: "NAME_TAKEN"}),
	} {
		raw, err := proto.Marshal(wire)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, left bool) {
		wire := &spb.Status{}
		if proto.Unmarshal(raw, wire) == nil {
			checkClassified(t, wire, left)
		}
	})
}

// checkClassified holds what core makes of a status to the contract.
func checkClassified(t *testing.T, wire *spb.Status, left bool) {
	t.Helper()
	err := status.ErrorProto(wire)
	if err == nil {
		return
	}
	f := Reader{Driver: driverName, Prefix: prefix}.Failure(err, left)
	if diff := cmp.Diff(f, (Reader{Driver: driverName, Prefix: prefix}).Failure(err, left)); diff != "" {
		t.Errorf("the same status is another failure:\n%s", diff)
	}
	checkWords(t, f)
	code := codes.Code(wire.GetCode())
	infos := ownInfos(wire)
	if len(infos) == 0 {
		want := instance.OutcomeUnknown
		switch {
		case !left:
			want = instance.Unavailable
		case code == codes.Unimplemented:
			want = instance.Unimplemented
		}
		bare := &instance.Failure{Class: want, Reason: f.Reason, Message: f.Message}
		if diff := cmp.Diff(bare, f); diff != "" {
			t.Errorf("what the driver did not say counts (-want +got):\n%s", diff)
		}
		return
	}
	if !slices.ContainsFunc(infos, func(info *errdetails.ErrorInfo) bool { return slices.Contains(mayBe(code, info.GetReason()), f.Class) }) {
		t.Errorf("%s with %v became %s", code, infos, f.Class)
	}
}

// ownInfos are the ErrorInfos that make a status the driver's word.
func ownInfos(wire *spb.Status) []*errdetails.ErrorInfo {
	var infos []*errdetails.ErrorInfo
	for _, detail := range wire.GetDetails() {
		info := &errdetails.ErrorInfo{}
		if detail.UnmarshalTo(info) == nil && info.GetDomain() == driverName && info.GetReason() != "" {
			infos = append(infos, info)
		}
	}
	return infos
}

// mayBe are the classes that the contract's table allows for what a driver says.
func mayBe(code codes.Code, reason string) []instance.Class {
	if want, known := contract.Code(contract.ParseReason(reason)); known && want != code && code != codes.Unimplemented {
		return []instance.Class{instance.OutcomeUnknown}
	}
	table := map[codes.Code][]instance.Class{
		codes.InvalidArgument:    {instance.SpecInvalid, instance.Internal},
		codes.NotFound:           {instance.NotFound},
		codes.AlreadyExists:      {instance.Conflict},
		codes.Unauthenticated:    {instance.Credentials},
		codes.PermissionDenied:   {instance.Credentials},
		codes.ResourceExhausted:  {instance.Quota, instance.Capacity, instance.RateLimited},
		codes.FailedPrecondition: {instance.Precondition, instance.AccountChanged, instance.StaleEpoch},
		codes.Aborted:            {instance.Pending},
		codes.Unimplemented:      {instance.Unimplemented},
		codes.Internal:           {instance.Internal},
		codes.OutOfRange:         {instance.Internal},
		codes.DataLoss:           {instance.DataLoss},
	}
	if classes, listed := table[code]; listed {
		return classes
	}
	return []instance.Class{instance.OutcomeUnknown}
}

// conditionsReason is what the API server demands of a condition's reason.
var conditionsReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// checkWords holds a failure to what ends up in conditions, events and logs.
func checkWords(t *testing.T, f *instance.Failure) {
	t.Helper()
	if !conditionsReason.MatchString(f.Reason) || len(f.Reason) > MaxReason {
		t.Errorf("the reason %q is not fit for a condition", f.Reason)
	}
	if !legible(f.Message, MaxMessage) {
		t.Errorf("the message %q is not fit for a condition", f.Message)
	}
	if len(f.Fields) > MaxFields {
		t.Errorf("%d fields", len(f.Fields))
	}
	for _, field := range f.Fields {
		if !legible(field.Path, MaxReason) || !legible(field.Description, MaxMessage) {
			t.Errorf("the field %q is not fit for a condition", field)
		}
	}
	if f.RetryAfter < 0 || f.RetryAfter > MaxWait {
		t.Errorf("to wait %v", f.RetryAfter)
	}
	if len(f.LastKnownState) > contract.MaxPartialStateBytes {
		t.Errorf("a state of %d bytes", len(f.LastKnownState))
	}
	if !legible(f.ProviderID, contract.MaxProviderIDBytes) || f.ProviderID != "" && !strings.HasPrefix(f.ProviderID, prefix) {
		t.Errorf("the providerID %q is none", f.ProviderID)
	}
}

// legible says whether a text is what people can read on one line, of at most limit bytes, and
// without blanks around it.
func legible(text string, limit int) bool {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	return len(text) <= limit && utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) && strings.TrimSpace(text) == text
}
