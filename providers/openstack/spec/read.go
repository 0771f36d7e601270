package spec

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of cloudProviderSpec, draft 2020-12. It is the caller's own.
func Schema() []byte { return bytes.Clone(schema) }

// Read returns the spec with its secrets in place and its defaults filled in. The error names every
// field that is wrong. It is SPEC_INVALID, or CREDENTIALS_INVALID where a Secret or the environment
// alone can mend it. secrets may be nil. Names that are no field's and no part of a whole Secret
// are passed over.
func Read(raw []byte, secrets map[string][]byte, env Environment) (Spec, error) {
	f, err := parse(raw, secrets)
	if err != nil {
		return Spec{}, err
	}
	var found findings
	s := f.machine(&found)
	s.Account = f.resolve(secrets, env, &found)
	if err := found.invalid(); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// ReadAccount returns only the account that the spec names. Fields that do not exist are refused as
// by Read. What else is missing or wrong is passed over: machines can be listed and deleted by a
// spec that none can be made from any more.
func ReadAccount(raw []byte, secrets map[string][]byte, env Environment) (Account, error) {
	f, err := parse(raw, secrets)
	if err != nil {
		return Account{}, err
	}
	var found findings
	account := f.resolve(secrets, env, &found)
	if err := found.invalid(); err != nil {
		return Account{}, err
	}
	return account, nil
}

// Validate returns what the request alone proves wrong, in the order of the fields; nil for
// nothing. What may yet come from a Secret is never found missing, and no rule is applied that a
// Secret could satisfy: Read applies those.
func Validate(raw []byte, secrets map[string][]byte, env Environment) []*driverv1alpha1.FieldViolation {
	f, err := parse(raw, secrets)
	if err != nil {
		return sdk.FieldViolations(err)
	}
	var found findings
	f.machine(&found)
	f.resolve(secrets, env, &found)
	return found.proven()
}

// Default fills in defaults without touching fields that are there, be they empty: it is
// idempotent. The error is SPEC_INVALID for what is no JSON object; what is wrong otherwise stays
// as it is.
//
// What it returns is kept with the machine. So it holds only decisions of the driver itself that
// are seen in the server and that a later version could make otherwise. There is one: whether there
// is a config drive, for which the answer is Kubermatic's. What the cloud, the operator's
// environment or a MachineClass decides today may be decided anew tomorrow and stays open: region,
// interface, availability zone, network, port security. So does what belongs to the driver and not
// to the machine: the microversion, and how often it looks.
func Default(raw []byte) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		var found findings
		found.add("cloudProviderSpec", "must be a JSON object")
		return nil, found.invalid()
	}
	const configDrive = "configDrive"
	if _, given := object[configDrive]; given {
		return bytes.Clone(raw), nil
	}
	object[configDrive] = json.RawMessage("false")
	var filled bytes.Buffer
	encoder := json.NewEncoder(&filled)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(object) // what was decoded can be encoded
	return bytes.TrimSuffix(filled.Bytes(), []byte("\n")), nil
}
