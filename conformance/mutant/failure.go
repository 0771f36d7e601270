package mutant

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		{Name: "filling-in", Check: "failure/missing-fields", mutate: asked(func(r *createReq) {
			if r.GetMachine() != nil && r.GetMachine().GetName() == "" {
				r.Machine.Name = "nameless"
			}
		})},
		{Name: "deleting-without-a-uid", Check: "failure/missing-fields", mutate: asked(func(r *deleteReq) {
			if r.GetMachine() != nil && r.GetMachine().GetUid() == "" {
				r.Machine.Uid = "none"
			}
		})},
		{Name: "listing-without-a-cluster", Check: "failure/missing-fields", mutate: asked(func(r *listReq) {
			if r.GetMeta() != nil && r.GetMeta().GetClusterUid() == "" {
				r.Meta.ClusterUid = "none"
			}
		})},
		{Name: "asked-by-nobody", Check: "failure/missing-fields", mutate: asked(func(r *getReq) {
			if r.GetMeta() != nil && r.GetMeta().GetRequestId() == "" {
				r.Meta.RequestId = "none"
			}
		})},
		{Name: "cutting-states", Check: "failure/request-too-large", mutate: asked(func(r *getReq) {
			r.LastKnownState = r.GetLastKnownState()[:min(len(r.GetLastKnownState()), contract.MaxLastKnownStateBytes)]
		})},
		{Name: "refusing-large-specs-as-wrong", Check: "failure/request-too-large", mutate: refused(func(r *deleteReq) error {
			if len(r.GetProvider().GetProviderSpec()) > contract.MaxProviderSpecBytes {
				return fail(specInvalid, "too large")
			}
			return nil
		})},
		{Name: "lenient-about-json", Check: "failure/bad-json", mutate: asked(func(r *createReq) {
			if !json.Valid(r.GetProvider().GetProviderSpec()) {
				r.Provider.ProviderSpec = []byte(`{"flavor":"small","image":"ubuntu-24.04"}`)
			}
		})},
		{Name: "lenient-about-fields", Check: "failure/unknown-spec-field", mutate: asked(func(r *createReq) {
			r.Provider.ProviderSpec = known(r.GetProvider().GetProviderSpec())
		})},
		{Name: "naming-no-field", Check: "failure/unknown-spec-field", mutate: failed(func(s *status.Status) error {
			return bare(s, func(detail any) bool { _, is := detail.(*errdetails.BadRequest); return is })
		})},
		{Name: "taking-any-size", Check: "failure/spec-too-large", mutate: as(driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, specInvalid)},
		{Name: "refusing-the-largest", Check: "failure/spec-too-large", mutate: refused(func(r *createReq) error {
			if len(r.GetProvider().GetProviderSpec()) >= contract.MaxProviderSpecBytes {
				return fail(driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, "too large")
			}
			return nil
		})},
	}
	return slices.Concat(all, wording(), telling(), mistaken())
}

// wording are mutants whose errors are not as the contract has them.
func wording() []Mutant {
	return []Mutant{
		{Name: "gone-without-credentials", Check: "failure/bad-credentials", mutate: as(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID, notFound)},
		{Name: "telling-request-ids", Check: "failure/stable-message", mutate: tellingRequestIDs},
		{Name: "never-saying-when", Check: "failure/retry-after", mutate: failed(func(s *status.Status) error {
			return bare(s, func(detail any) bool { _, is := detail.(*errdetails.RetryInfo); return is })
		})},
		{Name: "without-errorinfo", Check: "status/missing", mutate: failed(func(s *status.Status) error { return status.Error(s.Code(), s.Message()) })},
		{Name: "in-another-name", Check: "status/missing", mutate: failed(func(s *status.Status) error {
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
		{Name: "with-another-code", Check: "status/missing", mutate: failed(func(s *status.Status) error {
			p := s.Proto()
			p.Code = int32(codes.Unknown)
			return status.FromProto(p).Err()
		})},
		{Name: "long-winded", Check: "status/missing", mutate: failed(func(s *status.Status) error {
			p := s.Proto()
			p.Message += strings.Repeat(".", contract.MaxStatusBytes)
			return status.FromProto(p).Err()
		})},
	}
}

// telling are mutants that do not keep secrets and user data to themselves.
func telling() []Mutant {
	return []Mutant{
		{Name: "telling-all", Check: "failure/no-secrets-in-output", Launch: true, mutate: asked(func(r *createReq) {
			fmt.Fprintf(os.Stderr, "asked for %v\n", r)
		})},
		{Name: "telling-in-base64", Check: "failure/no-secrets-in-output", Launch: true, mutate: asked(func(r *createReq) {
			fmt.Fprintln(os.Stderr, base64.StdEncoding.EncodeToString(append([]byte("user_data="), r.GetUserData()...)))
		})},
		{Name: "telling-credentials", Check: "failure/no-secrets-in-output", Launch: true, mutate: asked(func(r *createReq) {
			for name, value := range r.GetProvider().GetSecrets() {
				if name != "millwrightConformance" {
					fmt.Fprintf(os.Stderr, "log in with %s=%x\n", name, value)
				}
			}
		})},
		{Name: "telling-bytes", Check: "failure/no-secrets-in-output", Launch: true, mutate: asked(func(r *createReq) {
			fmt.Fprintln(os.Stderr, r.GetUserData())
		})},
		{Name: "keeping-credentials", Check: "failure/no-secrets-on-disk", Launch: true, mutate: asked(func(r *createReq) {
			_ = os.WriteFile(filepath.Join(os.TempDir(), "login-"+r.GetMachine().GetUid()), r.GetProvider().GetSecrets()["key"], 0o600)
		})},
		{Name: "keeping-requests", Check: "failure/no-secrets-on-disk", Launch: true, mutate: asked(func(r *createReq) {
			// What it kept or why not, the check sees.
			_ = os.WriteFile(filepath.Join(os.TempDir(), "request-"+r.GetMachine().GetUid()), r.GetUserData(), 0o600)
		})},
		{Name: "leaking-user-data", Check: "failure/no-secrets", mutate: leaking(func(r *createReq) string { return tail(string(r.GetUserData())) })},
		{Name: "leaking-secrets", Check: "failure/no-secrets", mutate: leaking(func(r *createReq) string { return string(r.GetProvider().GetSecrets()["millwrightConformance"]) })},
		{Name: "quoting-what-is-refused", Check: "failure/no-secrets", mutate: quoting},
		{Name: "detailing-what-is-refused", Check: "failure/no-secrets", mutate: detailing},
		{Name: "handing-over-secrets", Check: "failure/no-secrets", mutate: remarking(func(r *createReq, m *machine) {
			m.LastKnownState = append(m.GetLastKnownState(), r.GetProvider().GetSecrets()["key"]...)
		})},
		{Name: "showing-user-data", Check: "failure/no-secrets", mutate: remarking(func(r *createReq, m *machine) { m.Message = "made of " + string(r.GetUserData()) })},
	}
}

// withProvider is a request with secrets.
type withProvider interface {
	proto.Message
	GetProvider() *driverv1alpha1.ProviderContext
}

// quoting says which key the cloud has refused, where it is asked for a machine.
func quoting(next handler) handler {
	return instead(func(r *getReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if contract.ErrorInfo(status.Convert(err)).GetReason() != contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID) {
			return answer, err
		}
		return nil, fail(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID, "the key "+string(r.GetProvider().GetSecrets()["key"])+" was refused")
	})(next)
}

// detailing says it in a detail.
func detailing(next handler) handler {
	return instead(func(r withProvider, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		s := status.Convert(err)
		if contract.ErrorInfo(s).GetReason() != contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID) {
			return answer, err
		}
		with, unwritten := s.WithDetails(&errdetails.DebugInfo{Detail: fmt.Sprintf("%x", r.GetProvider().GetSecrets()["key"])})
		if unwritten != nil {
			return nil, unwritten
		}
		return nil, with.Err()
	})(next)
}

// remarking adds to the machine in the answer to a create.
func remarking(add func(*createReq, *machine)) func(handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if m := machineOf(answer); err == nil && m != nil {
			add(r, m)
		}
		return answer, err
	})
}

// mistaken are mutants that take one error of the cloud for another.
func mistaken() []Mutant {
	all := []Mutant{{Name: "in-its-own-words", Check: "failure/quota", mutate: failed(func(s *status.Status) error {
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
		"unavailable": driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN,
	} {
		to := internal
		if reason == internal {
			to = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
		}
		all = append(all, Mutant{Name: "mistaking-" + name, Check: "failure/" + name, mutate: as(reason, to)})
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
