package driver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// spec is cloudProviderSpec.
type spec struct {
	// Flavor and Image name what the VM is made of. Required.
	Flavor, Image string
	// Zone is where it runs; the driver's default where not set.
	Zone string
}

// defaultZone is written down here, not left to the cloud: a default is part of the spec that is
// compared.
const defaultZone = "fake-1a"

// parseSpec returns the spec with its defaults, or an error that names every field that is wrong.
func (d *Driver) parseSpec(raw []byte) (spec, error) {
	s, wrong := readSpec(raw, d.zone)
	if len(wrong) > 0 {
		return spec{}, specInvalid(wrong)
	}
	return s, nil
}

// readSpec returns the spec, with its zone where it names none, and what is wrong with it, by path.
func readSpec(raw []byte, zone string) (s spec, wrong map[string]string) {
	s = spec{Zone: zone}
	optional := ""
	known := map[string]*string{"flavor": &s.Flavor, "image": &s.Image, "zone": &s.Zone, "endpoint": &optional, keySecret: &optional}
	required := map[string]*string{"flavor": &s.Flavor, "image": &s.Image, "zone": &s.Zone}
	wrong = map[string]string{}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		wrong["cloudProviderSpec"] = "is not a JSON object"
	}
	for name, value := range fields {
		into, ok := known[name]
		if !ok {
			wrong[name] = fmt.Sprintf("is not a field; there are %q", slices.Sorted(maps.Keys(known)))
			continue
		}
		if json.Unmarshal(value, into) != nil || string(value) == "null" {
			wrong[name] = "must be a string"
		}
	}
	for name, value := range required {
		if *value == "" && wrong[name] == "" {
			wrong[name] = "must be set"
		}
	}
	return s, wrong
}

// keyOf is the key to the cloud: from a Secret, else from the spec. Without one the driver sends
// none.
func keyOf(provider *driverv1alpha1.ProviderContext) string {
	if key, given := provider.GetSecrets()[keySecret]; given {
		return string(key)
	}
	var fields struct {
		Key string `json:"key"`
	}
	// A spec that cannot be read is refused where it is needed.
	_ = json.Unmarshal(provider.GetProviderSpec(), &fields)
	return fields.Key
}

// specInvalid returns the error for wrong fields: what is wrong, by path.
func specInvalid(wrong map[string]string) error {
	var parts []string
	var options []sdk.ErrorOption
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		parts = append(parts, path+": "+wrong[path])
		options = append(options, sdk.WithField(path, wrong[path]))
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, strings.Join(parts, "; "), options...)
}
