package mutant

import (
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func ofFailures() []Mutant {
	all := []Mutant{
		{"filling-in", "failure/missing-fields", asked(func(r *createReq) {
			if r.GetMachine() != nil && r.GetMachine().GetName() == "" {
				r.Machine.Name = "nameless"
			}
		})},
		{"lenient-about-json", "failure/bad-json", asked(func(r *createReq) {
			if !json.Valid(r.GetProvider().GetProviderSpec()) {
				r.Provider.ProviderSpec = []byte(`{"flavor":"small","image":"ubuntu-24.04"}`)
			}
		})},
		{"lenient-about-fields", "failure/unknown-spec-field", asked(func(r *createReq) {
			r.Provider.ProviderSpec = known(r.GetProvider().GetProviderSpec())
		})},
		{"naming-no-field", "failure/unknown-spec-field", failed(func(s *status.Status) error {
			return bare(s, func(detail any) bool { _, is := detail.(*errdetails.BadRequest); return is })
		})},
		{"taking-any-size", "failure/spec-too-large", as(driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, specInvalid)},
		{"gone-without-credentials", "failure/bad-credentials", as(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID, notFound)},
		{"telling-request-ids", "failure/stable-message", tellingRequestIDs},
		{"leaking-user-data", "failure/no-secrets", leaking(func(r *createReq) string { return tail(string(r.GetUserData())) })},
		{"leaking-secrets", "failure/no-secrets", leaking(func(r *createReq) string { return string(r.GetProvider().GetSecrets()["millwrightConformance"]) })},
		{"never-saying-when", "failure/retry-after", failed(func(s *status.Status) error {
			return bare(s, func(detail any) bool { _, is := detail.(*errdetails.RetryInfo); return is })
		})},
		{"without-errorinfo", "status/missing", failed(func(s *status.Status) error { return status.Error(s.Code(), s.Message()) })},
		{"in-another-name", "status/missing", failed(func(s *status.Status) error {
			p := s.Proto()
			for _, detail := range p.GetDetails() {
				var info errdetails.ErrorInfo
				if detail.UnmarshalTo(&info) == nil {
					info.Domain = "cloud"
					_ = detail.MarshalFrom(&info) // what was read can be written
				}
			}
			return status.FromProto(p).Err()
		})},
		{"with-another-code", "status/missing", failed(func(s *status.Status) error {
			p := s.Proto()
			p.Code = int32(codes.Unknown)
			return status.FromProto(p).Err()
		})},
		{"long-winded", "status/missing", failed(func(s *status.Status) error {
			p := s.Proto()
			p.Message += strings.Repeat(".", contract.MaxStatusBytes)
			return status.FromProto(p).Err()
		})},
	}
	return append(all, mistaken()...)
}

// mistaken are mutants that take one error of the cloud for another.
func mistaken() []Mutant {
	all := []Mutant{{"in-its-own-words", "failure/quota", failed(func(s *status.Status) error {
		p := s.Proto()
		p.Message = "something went wrong"
		return status.FromProto(p).Err()
	})}}
	for name, reason := range map[string]driverv1alpha1.ErrorReason{
		"quota":       driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED,
		"capacity":    driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE,
		"credentials": driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID,
		"permission":  driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING,
		"rate-limit":  driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED,
		"dependency":  driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
		"internal":    internal,
	} {
		to := internal
		if reason == internal {
			to = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
		}
		all = append(all, Mutant{"mistaking-" + name, "failure/" + name, as(reason, to)})
	}
	return all
}

// known is a spec without the fields that the fake driver does not know.
func known(spec []byte) []byte {
	var fields map[string]any
	if json.Unmarshal(spec, &fields) != nil {
		return spec
	}
	for field := range fields {
		if strings.HasPrefix(field, "millwright") {
			delete(fields, field)
		}
	}
	raw, _ := json.Marshal(fields) // it was JSON
	return raw
}

// bare is a status without details of a kind.
func bare(s *status.Status, drop func(detail any) bool) error {
	p := s.Proto()
	all := p.GetDetails()
	p.Details = nil
	for i, detail := range s.Details() {
		if !drop(detail) {
			p.Details = append(p.Details, all[i])
		}
	}
	return status.FromProto(p).Err()
}

// tail is the end of a text.
func tail(s string) string { return s[max(0, len(s)-64):] }

// leaking says in each error of a create what must not be said.
func leaking(what func(*createReq) string) func(handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		said := strings.ToValidUTF8(what(r), "?")
		answer, err := next(r)
		if err == nil {
			return answer, nil
		}
		p := status.Convert(err).Proto()
		p.Message += " " + said
		return nil, status.FromProto(p).Err()
	})
}

// tellingRequestIDs has each error differ.
func tellingRequestIDs(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		answer, err := next(ctx, method, request)
		r, ok := request.(interface {
			GetMeta() *driverv1alpha1.RequestMeta
		})
		if err == nil || !ok {
			return answer, err
		}
		p := status.Convert(err).Proto()
		p.Message += " (request " + r.GetMeta().GetRequestId() + ")"
		return nil, status.FromProto(p).Err()
	}
}

// without has a method that is not there.
func without(missing string) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			if method == missing {
				return nil, status.Error(codes.Unimplemented, "unknown method")
			}
			return next(ctx, method, request)
		}
	}
}
