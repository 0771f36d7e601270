package mutant

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

type (
	schemaAnswer   = driverv1alpha1.GetProviderSpecSchemaResponse
	defaultAnswer  = driverv1alpha1.DefaultProviderSpecResponse
	validateReq    = driverv1alpha1.ValidateProviderSpecRequest
	validateAnswer = driverv1alpha1.ValidateProviderSpecResponse
)

func ofSpecs() []Mutant {
	return []Mutant{
		{"no-schema", "spec/schema", answered(func(a *schemaAnswer) { a.JsonSchema = []byte("flavor: string") })},
		{"open-schema", "spec/schema", answered(func(a *schemaAnswer) {
			a.JsonSchema = bytes.ReplaceAll(a.GetJsonSchema(), []byte(`"additionalProperties": false`), []byte(`"additionalProperties": true`))
		})},
		{"schema-elsewhere", "spec/schema", answered(func(a *schemaAnswer) { a.JsonSchema = []byte(`{"$ref": "https://example.com/schema.json"}`) })},
		{"defaulting-over", "spec/default", answered(func(a *defaultAnswer) {
			a.ProviderSpec = bytes.ReplaceAll(a.GetProviderSpec(), []byte(`"small"`), []byte(`"large"`))
		})},
		{"defaulting-anew", "spec/default", counted(func(a *defaultAnswer, n int64) {
			a.ProviderSpec = fmt.Appendf(nil, `{"flavor":"small","image":"ubuntu-24.04","zone":"zone-%d"}`, n)
		})},
		{"missing-secrets", "spec/valid", answered(func(a *validateAnswer) {
			a.Violations = append(a.Violations, &driverv1alpha1.FieldViolation{Field: "key", Description: "is required"})
		})},
		{"findings-as-errors", "spec/paths", instead(func(r *validateReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
			answer, err := next(r)
			if a, ok := answer.(*validateAnswer); ok && err == nil && len(a.GetViolations()) > 0 {
				return nil, fail(specInvalid, "wrong")
			}
			return answer, err
		})},
		{"pathless", "spec/paths", answered(func(a *validateAnswer) {
			for _, v := range a.GetViolations() {
				v.Field = "spec"
			}
		})},
		{"asking-the-cloud", "spec/offline", askingTheCloud},
	}
}

// askingTheCloud looks into the cloud when it validates.
func askingTheCloud(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		if r, ok := request.(*validateReq); ok {
			list := &listReq{Meta: r.GetMeta(), Provider: r.GetProvider()}
			// Whatever it answers, the cloud was called.
			_, _ = next(ctx, driverv1alpha1.MachineService_ListMachines_FullMethodName, list)
		}
		return next(ctx, method, request)
	}
}
