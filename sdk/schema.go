package sdk

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// SchemaOf returns a schema of T, the struct that a cloudProviderSpec is read into, as the contract
// wants it: unknown properties are refused, and a field is required unless its json tag says
// omitempty or omitzero. Further rules stand in tags of github.com/invopop/jsonschema, such as
// `jsonschema:"writeOnly=true"` for a field that may come from a Secret, and
// `jsonschema:"format=uri"` for one that says where the driver connects to.
func SchemaOf[T any]() (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	reflector := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	raw, err := json.Marshal(reflector.Reflect(new(T)))
	if err != nil {
		return nil, fmt.Errorf("write the schema of %T: %w", *new(T), err)
	}
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: raw}, nil
}
