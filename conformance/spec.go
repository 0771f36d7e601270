package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	featureSchema   = driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_SCHEMA
	featureDefault  = driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_DEFAULT
	featureValidate = driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_VALIDATE
	featureTemplate = driverv1alpha1.Feature_FEATURE_INSTANCE_TEMPLATE
)

func specChecks() []Check {
	return []Check{
		{
			ID: "spec/schema", Level: Must, Musts: []int{113, 115, 116}, Feature: featureSchema, run: specSchema,
			Rule: "The schema is JSON Schema; objects refuse unknown properties, and it refers to nothing outside itself.",
		},
		{
			ID: "spec/default", Level: Must, Musts: []int{108, 109}, Feature: featureDefault, run: specDefault,
			Rule: "DefaultProviderSpec is idempotent and changes no field that is set.",
		},
		{
			ID: "spec/valid", Level: Must, Musts: []int{112}, Feature: featureValidate, run: specValid,
			Rule: "ValidateProviderSpec finds nothing in a spec of which machines can be made, also without its secrets.",
		},
		{
			ID: "spec/online", Level: Must, Musts: []int{11}, Feature: featureValidate, run: specOnline,
			Rule: "ValidateProviderSpec with online, which core asks before each machine, finds nothing in a spec of which machines can be made.",
		},
		{
			ID: "spec/paths", Level: Must, Musts: []int{117}, Feature: featureValidate, run: specPaths,
			Rule: "Findings are an answer, not an error, and name the field's path.",
		},
		{
			ID: "spec/offline", Level: Must, Musts: []int{111}, Feature: featureValidate, Hooks: true,
			run:  offline(func(ctx context.Context, t *trial) { t.violations(ctx, t.config.ProviderSpec) }),
			Rule: "Without online ValidateProviderSpec does not call the cloud.",
		},
		{
			ID: "spec/offline-default", Level: Must, Musts: []int{110}, Feature: featureDefault, Hooks: true,
			run:  offline(func(ctx context.Context, t *trial) { t.defaulted(ctx, t.config.ProviderSpec) }),
			Rule: "DefaultProviderSpec does not call the cloud.",
		},
		{
			ID: "spec/offline-schema", Level: Must, Musts: []int{107}, Feature: featureSchema, Hooks: true, run: offline(getSchema),
			Rule: "GetProviderSpecSchema does not call the cloud.",
		},
		{
			ID: "spec/template", Level: Must, Musts: []int{119, 120, 121}, Feature: featureTemplate, run: specTemplate,
			Rule: "GetInstanceTemplate says what a VM of the spec offers: cpu and memory at least, as Kubernetes quantities.",
		},
	}
}

// defaulted asks for a spec's defaults.
func (t *trial) defaulted(ctx context.Context, spec []byte) map[string]any {
	answer, err := t.specs.DefaultProviderSpec(ctx, &driverv1alpha1.DefaultProviderSpecRequest{
		Meta: t.machine().meta(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: spec},
	})
	if err != nil {
		t.fatalf("DefaultProviderSpec: %v", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(answer.GetProviderSpec(), &fields); err != nil {
		t.fatalf("the spec with defaults is not a JSON object: %v", err)
	}
	return fields
}

func specDefault(ctx context.Context, t *trial) {
	var written map[string]any
	_ = json.Unmarshal(t.config.ProviderSpec, &written) // the config was checked
	once := t.defaulted(ctx, t.config.ProviderSpec)
	kept("", written, once, func(path string, was, is any) { t.errorf("the field %s was %v, and became %v", path, was, is) })
	raw, _ := json.Marshal(once) // it was JSON
	if twice := t.defaulted(ctx, raw); !maps.EqualFunc(once, twice, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
		t.errorf("%v becomes %v when it is given defaults again", once, twice)
	}
}

// kept calls changed for each value in was, at any depth, that is not the same in is. What was
// added beside it does not matter.
func kept(path string, was, is any, changed func(path string, was, is any)) {
	switch was := was.(type) {
	case map[string]any:
		fields, _ := is.(map[string]any)
		for name, value := range was {
			kept(strings.TrimPrefix(path+"."+name, "."), value, fields[name], changed)
		}
	case []any:
		elements, _ := is.([]any)
		for i, value := range was {
			var element any
			if i < len(elements) {
				element = elements[i]
			}
			kept(fmt.Sprintf("%s[%d]", path, i), value, element, changed)
		}
	default:
		if !reflect.DeepEqual(was, is) {
			changed(path, was, is)
		}
	}
}

// violations asks what is wrong with a spec, without the cloud.
func (t *trial) violations(ctx context.Context, spec []byte) []*driverv1alpha1.FieldViolation {
	answer, err := t.specs.ValidateProviderSpec(ctx, &driverv1alpha1.ValidateProviderSpecRequest{
		Meta: t.machine().meta(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: spec},
	})
	if err != nil {
		t.fatalf("ValidateProviderSpec: %v", err)
	}
	return answer.GetViolations()
}

func specValid(ctx context.Context, t *trial) {
	for _, v := range t.violations(ctx, t.config.ProviderSpec) {
		t.errorf("%s: %s", v.GetField(), v.GetDescription())
	}
}

func specOnline(ctx context.Context, t *trial) {
	m := t.machine()
	answer, err := t.specs.ValidateProviderSpec(ctx, &driverv1alpha1.ValidateProviderSpecRequest{Meta: m.meta(), Provider: m.provider(), Online: true})
	if err != nil {
		t.fatalf("ValidateProviderSpec with online: %v", err)
	}
	for _, v := range answer.GetViolations() {
		t.errorf("%s: %s", v.GetField(), v.GetDescription())
	}
}

func specPaths(ctx context.Context, t *trial) {
	for _, v := range t.violations(ctx, with(t.config.ProviderSpec, noField, "x")) {
		if strings.Contains(v.GetField(), noField) {
			return
		}
	}
	t.errorf("no finding names the unknown field %s", noField)
}

func getSchema(ctx context.Context, t *trial) {
	if _, err := t.specs.GetProviderSpecSchema(ctx, &driverv1alpha1.GetProviderSpecSchemaRequest{}); err != nil {
		t.errorf("GetProviderSpecSchema: %v", err)
	}
}

// offline is a check that something does not call the cloud.
func offline(do func(context.Context, *trial)) func(context.Context, *trial) {
	return func(ctx context.Context, t *trial) {
		before := t.cloud.countAllCalls(ctx)
		do(ctx, t)
		if n := t.cloud.countAllCalls(ctx) - before; n != 0 {
			t.errorf("the cloud was called %d times", n)
		}
	}
}

// quantity is how Kubernetes writes an amount.
var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([mkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$`)

func specTemplate(ctx context.Context, t *trial) {
	m := t.machine()
	answer, err := t.specs.GetInstanceTemplate(ctx, &driverv1alpha1.GetInstanceTemplateRequest{Meta: m.meta(), Provider: m.provider()})
	if err != nil {
		t.fatalf("GetInstanceTemplate: %v", err)
	}
	capacity := answer.GetTemplate().GetCapacity()
	for _, resource := range []string{"cpu", "memory"} {
		if capacity[resource] == "" {
			t.errorf("the capacity says nothing of %s", resource)
		}
	}
	for resource, value := range capacity {
		if !quantity.MatchString(value) {
			t.errorf("capacity: %s is %q, which is no Kubernetes quantity such as 4 or 16Gi", resource, value)
		}
	}
	for _, taint := range answer.GetTemplate().GetTaints() {
		if taint.GetEffect() == driverv1alpha1.TaintEffect_TAINT_EFFECT_UNSPECIFIED {
			t.errorf("the taint %s has no effect", taint.GetKey())
		}
	}
}
