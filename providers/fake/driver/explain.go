package driver

import (
	"context"
	_ "embed" // for the schema
	"encoding/json"
	"maps"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

//go:embed schema.json
var schema []byte

var (
	_ sdk.SpecSchema    = (*Driver)(nil)
	_ sdk.SpecDefaulter = (*Driver)(nil)
	_ sdk.SpecValidator = (*Driver)(nil)
)

// GetProviderSpecSchema implements sdk.SpecSchema.
func (d *Driver) GetProviderSpecSchema(
	context.Context, *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: schema, Version: "1"}, nil
}

// DefaultProviderSpec implements sdk.SpecDefaulter. What is wrong with the spec is not its business.
func (d *Driver) DefaultProviderSpec(
	_ context.Context, r *driverv1alpha1.DefaultProviderSpecRequest,
) (*driverv1alpha1.DefaultProviderSpecResponse, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.GetProvider().GetProviderSpec(), &fields); err != nil {
		return nil, specInvalid(map[string]string{"cloudProviderSpec": "is not a JSON object"})
	}
	if _, set := fields["zone"]; !set {
		zone, _ := json.Marshal(d.zone) // a string cannot fail
		fields["zone"] = zone
	}
	filled, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.DefaultProviderSpecResponse{ProviderSpec: filled}, nil
}

// ValidateProviderSpec implements sdk.SpecValidator. Online it finds out whether the key opens an account; what is sold
// this cloud does not tell before somebody buys.
func (d *Driver) ValidateProviderSpec(
	ctx context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	answer := &driverv1alpha1.ValidateProviderSpecResponse{}
	_, wrong := readSpec(r.GetProvider().GetProviderSpec(), d.zone)
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		answer.Violations = append(answer.Violations, &driverv1alpha1.FieldViolation{Field: path, Description: wrong[path]})
	}
	if len(wrong) > 0 || !r.GetOnline() {
		return answer, nil
	}
	return answer, d.tryKey(ctx, keyOf(r.GetProvider()))
}
