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
	_ sdk.SpecSchema        = (*Driver)(nil)
	_ sdk.SpecDefaulter     = (*Driver)(nil)
	_ sdk.SpecValidator     = (*Driver)(nil)
	_ sdk.InstanceTemplater = (*Driver)(nil)
)

// GetProviderSpecSchema implements sdk.SpecSchema.
func (d *Driver) GetProviderSpecSchema(
	context.Context, *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: schema}, nil
}

// DefaultProviderSpec implements sdk.SpecDefaulter. What is wrong with the spec is not its
// business.
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

// ValidateProviderSpec implements sdk.SpecValidator. Online it finds out whether the key opens an
// account; what is sold this cloud does not tell before somebody buys.
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

// sizes are what the flavors offer: the cloud sells them by name alone.
var sizes = map[string]map[string]string{
	"small":  {"cpu": "2", "memory": "4Gi", "pods": "110"},
	"medium": {"cpu": "4", "memory": "8Gi", "pods": "110"},
	"large":  {"cpu": "8", "memory": "16Gi", "pods": "110"},
}

// GetInstanceTemplate implements sdk.InstanceTemplater.
func (d *Driver) GetInstanceTemplate(
	_ context.Context, r *driverv1alpha1.GetInstanceTemplateRequest,
) (*driverv1alpha1.GetInstanceTemplateResponse, error) {
	want, err := d.parseSpec(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	size, sold := sizes[want.Flavor]
	if !sold {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND, "It is not known what the flavor "+want.Flavor+" offers.")
	}
	return &driverv1alpha1.GetInstanceTemplateResponse{Template: &driverv1alpha1.InstanceTemplate{
		InstanceType: want.Flavor, Capacity: maps.Clone(size), Architecture: "amd64", OperatingSystem: "linux",
		Labels: map[string]string{"topology.kubernetes.io/zone": want.Zone},
	}}, nil
}
