package conformance

import (
	"bytes"
	"context"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func failureChecks() []Check {
	checks := []Check{
		{
			ID: "failure/missing-fields", Level: Must, Musts: []int{40, 122, 123, 124}, run: missingFields,
			Rule: "A request, of any RPC, without a field that is required is SPEC_INVALID.",
		},
		{
			ID: "failure/bad-json", Level: Must, Musts: []int{40}, run: badJSON,
			Rule: "A provider_spec that is no JSON object is SPEC_INVALID.",
		},
		{
			ID: "failure/unknown-spec-field", Level: Must, Musts: []int{74}, run: unknownSpecField,
			Rule: "Unknown fields of the spec are refused (SPEC_INVALID) by name.",
		},
		{
			ID: "failure/spec-too-large", Level: Must, Musts: []int{41}, run: specTooLarge,
			Rule: "A provider_spec of up to 512 KiB is taken; a larger one is REQUEST_TOO_LARGE.",
		},
		{
			ID: "failure/request-too-large", Level: Must, Musts: []int{41}, run: requestTooLarge,
			Rule: "A request, of any RPC, in which only a size is exceeded is REQUEST_TOO_LARGE.",
		},
		{
			ID: "failure/bad-credentials", Level: Must, Musts: []int{52}, run: badCredentials,
			Rule: "Credentials that the cloud refuses are CREDENTIALS_INVALID, and make nothing look gone.",
		},
		{
			ID: "failure/stable-message", Level: Must, Musts: []int{67, 125}, run: stableMessage,
			Rule: "Messages are stable: no request ids, no times.",
		},
		{
			ID: "failure/no-secrets", Level: Must, Musts: []int{35, 86, 87, 126}, run: noSecretsInAnswers,
			Rule: "No error holds a secret or user data, nor does a machine's reason, message or last_known_state.",
		},
		{
			ID: "failure/no-secrets-in-output", Level: Must, Musts: []int{35}, run: noSecretsInOutput,
			Rule: "No log line, of any level, holds a secret or user data.",
		},
		{
			ID: "failure/no-secrets-on-disk", Level: Must, Musts: []int{36}, run: noSecretsOnDisk,
			Rule: "No file holds a secret or user data.",
		},
		{
			ID: "failure/retry-after", Level: Should, Hooks: true, run: retryAfter,
			Rule: "RATE_LIMITED says by RetryInfo how long to wait.",
		},
	}
	return append(checks, reasonChecks()...)
}

// reasonChecks are one for each error of the cloud.
func reasonChecks() []Check {
	var checks []Check
	for _, c := range []struct {
		name  string
		error backendv1alpha1.NamedError
		want  driverv1alpha1.ErrorReason
	}{
		{"quota", backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED},
		{"capacity", backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE},
		{"credentials", backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID},
		{"permission", backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION, driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING},
		{"rate-limit", backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT, driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED},
		{"dependency", backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND},
		{"internal", backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL},
		{"unavailable", backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE, driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN},
	} {
		checks = append(checks, Check{
			ID: "failure/" + c.name, Level: Must, Musts: []int{122, 123}, Hooks: true,
			Rule: "Each error of the cloud has its reason, in the cloud's own words: here " + contract.ReasonName(c.want) + ".",
			run:  func(ctx context.Context, t *trial) { cloudFails(ctx, t, c.error, c.want) },
		})
	}
	return checks
}

// words are what a test cloud says when it is told to fail.
const words = "The saw blade is blunt."

func cloudFails(ctx context.Context, t *trial, which backendv1alpha1.NamedError, want driverv1alpha1.ErrorReason) {
	m := t.machine()
	t.cloud.inject(ctx, m, &backendv1alpha1.Fault{
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Error: &backendv1alpha1.FaultError{Name: which, Message: words},
	})
	_, err := m.create(ctx)
	t.expect("a create of which the cloud makes this error", err, want)
	if !strings.Contains(status.Convert(err).Message(), words) {
		t.errorf("the cloud said %q, and the driver %q", words, status.Convert(err).Message())
	}
	t.cloud.removeFaults(ctx)
	// What came of it can be deleted, and the error was not remembered.
	m.running(ctx)
}

func badJSON(ctx context.Context, t *trial) {
	for _, raw := range []string{"{", "[]", `"flavor"`, "null", "{}{}"} {
		m := t.machine()
		m.spec = []byte(raw)
		_, err := m.create(ctx)
		t.expect("a create with the provider_spec "+raw, err, specInvalid)
	}
}

// noField is a field that no driver has.
const noField = "millwrightConformanceUnknown"

func unknownSpecField(ctx context.Context, t *trial) {
	m := t.machine()
	m.spec = with(t.config.ProviderSpec, noField, "x")
	_, err := m.create(ctx)
	t.expect("a create with the field "+noField, err, specInvalid)
	if !names(err, noField) {
		t.errorf("the error names no field %s: %v", noField, err)
	}
}

// names says whether a BadRequest in the error names a field.
func names(err error, field string) bool {
	for _, detail := range status.Convert(err).Details() {
		bad, ok := detail.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		for _, v := range bad.GetFieldViolations() {
			if strings.Contains(v.GetField(), field) {
				return true
			}
		}
	}
	return false
}

func specTooLarge(ctx context.Context, t *trial) {
	m := t.machine()
	m.spec = with(t.config.ProviderSpec, noField, strings.Repeat("x", contract.MaxProviderSpecBytes))
	_, err := m.create(ctx)
	t.expect("a create with a spec that is too large", err, tooLarge)
	largest := t.machine()
	blanks := contract.MaxProviderSpecBytes - len(t.config.ProviderSpec)
	largest.spec = append(bytes.Clone(t.config.ProviderSpec), bytes.Repeat([]byte(" "), blanks)...)
	largest.running(ctx)
}

func badCredentials(ctx context.Context, t *trial) {
	if len(t.badSecrets) == 0 {
		t.notRun("name credentials that the cloud refuses as badSecrets")
	}
	m := t.machine()
	m.running(ctx)
	m.secrets = t.badSecrets
	m.refused(ctx, "with credentials that the cloud refuses", driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID)
	_, err := m.create(ctx)
	t.expect("a create with credentials that the cloud refuses", err, driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID)
}

// refused notes a breach unless status and delete are refused with that reason.
func (m *machine) refused(ctx context.Context, why string, want driverv1alpha1.ErrorReason) {
	_, err := m.get(ctx)
	m.t.expect("a status "+why, err, want)
	_, err = m.remove(ctx)
	m.t.expect("a delete "+why, err, want)
}

func stableMessage(ctx context.Context, t *trial) {
	m := t.machine()
	_, first := m.get(ctx)
	_, second := m.get(ctx)
	if a, b := status.Convert(first).Message(), status.Convert(second).Message(); a != b {
		t.errorf("asked twice, the driver says %q and %q", a, b)
	}
}

func retryAfter(ctx context.Context, t *trial) {
	m := t.machine()
	t.cloud.inject(ctx, m, &backendv1alpha1.Fault{
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
		Error: &backendv1alpha1.FaultError{
			Name: backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT, RetryAfter: durationpb.New(7 * time.Second),
		},
	})
	_, err := m.create(ctx)
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() == 7*time.Second {
			return
		}
	}
	t.errorf("the cloud said to wait for 7 s, and the error does not: %v", err)
}
