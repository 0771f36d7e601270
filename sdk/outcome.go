package sdk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
)

const (
	// maxMessage is the longest message that is sent, in bytes.
	maxMessage = 1 << 10
	// minMessage is what is left of a message before details are left out.
	minMessage = 256
	// maxViolations is how many violations of a field or a quota are sent at most.
	maxViolations = 32
)

// outcome returns the status that goes over the wire for an error of a driver's method. ctx is the
// call's, and domain the driver's name. The result fits into contract.MaxStatusBytes, holds none of
// the secrets, and has no ErrorInfo only when the call itself was given up: then nobody knows how
// it ended. Secrets are taken out before anything is shortened: of one that is cut off not all
// could be found.
func outcome(ctx context.Context, domain string, err error, secrets *redact.Secrets) *status.Status {
	if absent, ok := errors.AsType[notOffered](err); ok {
		return absent.GRPCStatus()
	}
	if own, ok := errors.AsType[*contractError](err); ok {
		// What was wrapped around it says where it came from.
		return compose(own.code, secrets.Text(err.Error()), cleaned(own.details(domain), secrets))
	}
	if ctx.Err() != nil && gaveUp(err) {
		return status.FromContextError(ctx.Err())
	}
	if s, ok := status.FromError(err); ok {
		if details := ownDetails(s, domain); details != nil {
			return compose(s.Code(), secrets.Text(s.Message()), cleaned(details, secrets))
		}
	}
	message := secrets.Text(status.Convert(err).Message())
	if message == "" {
		message = "the driver failed and does not say why"
	}
	return compose(codes.Internal, message, []protoadapt.MessageV1{&errdetails.ErrorInfo{
		Domain: domain, Reason: contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL),
	}})
}

// gaveUp says whether err is what a cancelled or late context makes of a call, also of a gRPC call
// to a cloud.
func gaveUp(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	code := status.Code(err)
	return code == codes.Canceled || code == codes.DeadlineExceeded
}

// ownDetails returns the details of a status that a driver made by other means than NewError,
// ErrorInfo first; nil when core would not believe it: without an ErrorInfo of the driver's own
// domain, or with a reason under a foreign code.
func ownDetails(s *status.Status, domain string) []protoadapt.MessageV1 {
	var info *errdetails.ErrorInfo
	var rest []protoadapt.MessageV1
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == domain && d.GetReason() != "" {
				info = d
			}
		case protoadapt.MessageV1:
			rest = append(rest, d)
		}
	}
	if info == nil || s.Code() == codes.Unimplemented {
		return nil
	}
	if code, known := contract.Code(contract.ParseReason(info.GetReason())); known && code != s.Code() {
		return nil
	}
	return append([]protoadapt.MessageV1{info}, rest...)
}

// cleaned takes the secrets out of details, in place. The first, the ErrorInfo, always stays.
func cleaned(details []protoadapt.MessageV1, secrets *redact.Secrets) []protoadapt.MessageV1 {
	return slices.DeleteFunc(details, func(detail protoadapt.MessageV1) bool {
		return !secrets.Detail(protoadapt.MessageV2Of(detail))
	})
}

// compose makes a status that fits: it shortens texts, then lists of violations, and last leaves
// out details from the end. The first detail, the ErrorInfo, always stays. It changes details.
func compose(code codes.Code, message string, details []protoadapt.MessageV1) *status.Status {
	for _, detail := range details {
		keepViolations(detail, maxViolations)
		shortenViolations(detail)
	}
	limit := maxMessage
	for {
		s := assemble(code, shorten(message, limit), details)
		if proto.Size(s.Proto()) <= contract.MaxStatusBytes {
			return s
		}
		last, longest := len(details)-1, longestList(details)
		switch {
		case limit > minMessage:
			limit /= 2
		case keepViolations(longest, violations(longest)/2):
		case last > 0:
			details = details[:last]
		default:
			return assemble(code, shorten(message, limit), []protoadapt.MessageV1{bareInfo(details[0])})
		}
	}
}

// assemble leaves out details that cannot be encoded.
func assemble(code codes.Code, message string, details []protoadapt.MessageV1) *status.Status {
	s := status.New(code, message)
	for _, detail := range details {
		if more, err := s.WithDetails(detail); err == nil {
			s = more
		}
	}
	return s
}

// bareInfo is what core needs of an ErrorInfo that is too long by itself.
func bareInfo(detail protoadapt.MessageV1) protoadapt.MessageV1 {
	info, ok := detail.(*errdetails.ErrorInfo)
	if !ok {
		return detail
	}
	return &errdetails.ErrorInfo{Domain: info.GetDomain(), Reason: shorten(info.GetReason(), minMessage)}
}

// violations returns how many a detail lists; 0 for one that is no list.
func violations(detail protoadapt.MessageV1) int {
	switch d := detail.(type) {
	case *errdetails.BadRequest:
		return len(d.GetFieldViolations())
	case *errdetails.QuotaFailure:
		return len(d.GetViolations())
	case *errdetails.PreconditionFailure:
		return len(d.GetViolations())
	}
	return 0
}

// longestList returns the detail that lists most.
func longestList(details []protoadapt.MessageV1) protoadapt.MessageV1 {
	return slices.MaxFunc(details, func(a, b protoadapt.MessageV1) int { return violations(a) - violations(b) })
}

// keepViolations cuts a detail's list to its first n, where n is at least 1; false when there was
// nothing to cut.
func keepViolations(detail protoadapt.MessageV1, n int) bool {
	if n < 1 || violations(detail) <= n {
		return false
	}
	switch d := detail.(type) {
	case *errdetails.BadRequest:
		d.FieldViolations = d.GetFieldViolations()[:n]
	case *errdetails.QuotaFailure:
		d.Violations = d.GetViolations()[:n]
	case *errdetails.PreconditionFailure:
		d.Violations = d.GetViolations()[:n]
	}
	return true
}

// shortenViolations cuts the texts in a detail's list to maxDetailText each.
func shortenViolations(detail protoadapt.MessageV1) {
	switch d := detail.(type) {
	case *errdetails.BadRequest:
		for _, v := range d.GetFieldViolations() {
			v.Field, v.Description = shorten(v.GetField(), maxDetailText), shorten(v.GetDescription(), maxDetailText)
		}
	case *errdetails.QuotaFailure:
		for _, v := range d.GetViolations() {
			v.Subject, v.Description = shorten(v.GetSubject(), maxDetailText), shorten(v.GetDescription(), maxDetailText)
		}
	case *errdetails.PreconditionFailure:
		for _, v := range d.GetViolations() {
			v.Subject, v.Description = shorten(v.GetSubject(), maxDetailText), shorten(v.GetDescription(), maxDetailText)
		}
	}
}

// shorten cuts a text to limit bytes, and replaces what is not UTF-8: protobuf could not encode it.
func shorten(text string, limit int) string {
	const ellipsis = "…"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}
