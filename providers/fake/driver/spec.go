package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// spec is cloudProviderSpec.
type spec struct {
	// Flavor and Image name what the VM is made of. Required.
	Flavor, Image string
	// Zone is where it runs; defaultZone where not set.
	Zone string
}

// defaultZone is written down here, not left to the cloud: a default is part of the spec that is compared.
const defaultZone = "fake-1a"

// finding is one thing wrong with a field.
type finding = *driverv1alpha1.FieldViolation

// readSpec returns the spec with its defaults, and everything that is wrong with it. raw is a JSON object.
func readSpec(raw []byte) (spec, []finding) {
	var found []finding
	add := func(field, format string, args ...any) {
		found = append(found, &driverv1alpha1.FieldViolation{Field: field, Description: fmt.Sprintf(format, args...)})
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		add("cloudProviderSpec", "is not a JSON object")
		return spec{}, found
	}
	s := spec{Zone: defaultZone}
	known := map[string]*string{"flavor": &s.Flavor, "image": &s.Image, "zone": &s.Zone}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		into, ok := known[name]
		if !ok {
			add(name, "is not a field; there are %q", slices.Sorted(maps.Keys(known)))
			continue
		}
		if err := json.Unmarshal(fields[name], into); err != nil || bytes.Equal(fields[name], []byte("null")) {
			add(name, "must be a string")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if *known[name] == "" && !slices.ContainsFunc(found, func(f finding) bool { return f.GetField() == name }) {
			add(name, "must be set")
		}
	}
	return s, found
}

// parseSpec is readSpec for those who need a spec that is right.
func parseSpec(raw []byte) (spec, error) {
	s, found := readSpec(raw)
	if len(found) == 0 {
		return s, nil
	}
	fields := make([]sdk.ErrorOption, 0, len(found))
	message := ""
	for _, f := range found {
		fields = append(fields, sdk.WithField(f.GetField(), f.GetDescription()))
		message += "; " + f.GetField() + ": " + f.GetDescription()
	}
	return spec{}, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, message[len("; "):], fields...)
}

// ValidateProviderSpec implements sdk.SpecValidator. Whether the flavor and the image exist is left to the create: the
// cloud may get them at any time.
func (d *Driver) ValidateProviderSpec(
	_ context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	_, found := readSpec(r.GetProvider().GetProviderSpec())
	return &driverv1alpha1.ValidateProviderSpecResponse{Violations: found}, nil
}
