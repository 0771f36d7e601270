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
	templateAnswer = driverv1alpha1.GetInstanceTemplateResponse
)

func ofSpecs() []Mutant {
	return []Mutant{
		{Name: "no-schema", Check: "spec/schema", mutate: answered(func(a *schemaAnswer) { a.JsonSchema = []byte("flavor: string") })},
		{Name: "uncompiled-schema", Check: "spec/schema", mutate: answered(func(a *schemaAnswer) { a.JsonSchema = []byte(`{"type": "nonsense"}`) })},
		{Name: "another-schema", Check: "spec/schema", mutate: answered(func(a *schemaAnswer) {
			a.JsonSchema = []byte(`{"type": "object", "properties": {"size": {"type": "string"}}, "additionalProperties": false}`)
		})},
		{Name: "open-schema", Check: "spec/schema", mutate: answered(func(a *schemaAnswer) {
			a.JsonSchema = bytes.ReplaceAll(a.GetJsonSchema(), []byte(`"additionalProperties": false`), []byte(`"additionalProperties": true`))
		})},
		{Name: "schema-elsewhere", Check: "spec/schema", mutate: answered(func(a *schemaAnswer) { a.JsonSchema = []byte(`{"$ref": "https://example.com/schema.json"}`) })},
		{Name: "showing-a-secret", Check: "spec/schema", mutate: withField(`"key": {"type": "string"}`)},
		{Name: "showing-a-nested-secret", Check: "spec/schema", mutate: withField(
			`"auth": {"type": "object", "additionalProperties": false, "properties": {"password": {"type": "string"}}}`)},
		{Name: "requiring-what-is-no-secret", Check: "spec/schema", mutate: answered(func(a *schemaAnswer) {
			a.JsonSchema = bytes.ReplaceAll(a.GetJsonSchema(), []byte(`"required": [`), []byte(`"required": ["zone", `))
		})},
		{Name: "defaulting-over", Check: "spec/default", mutate: answered(func(a *defaultAnswer) {
			a.ProviderSpec = bytes.ReplaceAll(a.GetProviderSpec(), []byte(`"small"`), []byte(`"large"`))
		})},
		{Name: "defaulting-anew", Check: "spec/default", mutate: counted(func(a *defaultAnswer, n int64) {
			a.ProviderSpec = fmt.Appendf(nil, `{"flavor":"small","image":"ubuntu-24.04","zone":"zone-%d"}`, n)
		})},
		{Name: "missing-secrets", Check: "spec/valid", mutate: answered(func(a *validateAnswer) {
			a.Violations = append(a.Violations, &driverv1alpha1.FieldViolation{Field: "key", Description: "is required"})
		})},
		{Name: "never-online", Check: "spec/online", mutate: refused(func(r *validateReq) error {
			if r.GetOnline() {
				return fail(internal, "the cloud cannot be asked")
			}
			return nil
		})},
		{Name: "missing-what-is-there", Check: "spec/online", mutate: instead(func(r *validateReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
			if r.GetOnline() {
				return &validateAnswer{Violations: []*driverv1alpha1.FieldViolation{{Field: "image", Description: "is not there"}}}, nil
			}
			return next(r)
		})},
		{Name: "findings-as-errors", Check: "spec/paths", mutate: instead(func(r *validateReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
			answer, err := next(r)
			if a, ok := answer.(*validateAnswer); ok && err == nil && len(a.GetViolations()) > 0 {
				return nil, fail(specInvalid, "wrong")
			}
			return answer, err
		})},
		{Name: "pathless", Check: "spec/paths", mutate: answered(func(a *validateAnswer) {
			for _, v := range a.GetViolations() {
				v.Field = "spec"
			}
		})},
		{Name: "validating-in-the-cloud", Check: "spec/offline", mutate: askingTheCloud[*validateReq]},
		{Name: "defaulting-in-the-cloud", Check: "spec/offline-default", mutate: askingTheCloud[*driverv1alpha1.DefaultProviderSpecRequest]},
		{Name: "schema-of-the-cloud", Check: "spec/offline-schema", mutate: askingTheCloud[*driverv1alpha1.GetProviderSpecSchemaRequest]},
		{Name: "without-memory", Check: "spec/template", mutate: answered(func(a *templateAnswer) { delete(a.GetTemplate().GetCapacity(), "memory") })},
		{Name: "tainting-without-effect", Check: "spec/template", mutate: answered(func(a *templateAnswer) {
			a.Template.Taints = append(a.GetTemplate().GetTaints(), &driverv1alpha1.Taint{Key: "example.com/x"})
		})},
		{Name: "measuring-in-words", Check: "spec/template", mutate: answered(func(a *templateAnswer) { a.Template.Capacity["memory"] = "4 GB" })},
	}
}

// withField adds a field to the schema. One of the same name that stands there loses its own.
func withField(field string) func(handler) handler {
	return answered(func(a *schemaAnswer) {
		schema := bytes.ReplaceAll(a.GetJsonSchema(), []byte(`"key": {`), []byte(`"formerKey": {`))
		a.JsonSchema = bytes.Replace(schema, []byte(`"properties": {`), []byte(`"properties": {`+field+`, `), 1)
	})
}

// askingTheCloud looks into the cloud at requests of a type.
func askingTheCloud[T proto.Message](next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		if _, ok := request.(T); ok {
			// Whatever it answers, the cloud was called.
			_, _ = next(ctx, driverv1alpha1.MachineService_ListMachines_FullMethodName, &listReq{
				Meta:     &driverv1alpha1.RequestMeta{RequestId: "r", ClusterUid: "c"},
				Provider: &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"flavor":"small","image":"ubuntu-24.04"}`)},
			})
		}
		return next(ctx, method, request)
	}
}
