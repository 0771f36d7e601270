package blueprint

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/references"
)

// Resolved is what a driver is told for a blueprint.
type Resolved struct {
	// Spec has what comes from ConfigMaps filled in; what comes from Secrets is referred to still. Told is its JSON.
	Spec providerspec.Spec
	Told []byte
	// Secrets go with Told. They must not be logged.
	Secrets map[string][]byte
}

// Resolve reads all that a blueprint of an object in the namespace refers to. Errors are as in Draw.
func Resolve(ctx context.Context, reader *references.Reader, namespace string, b Blueprint) (Resolved, error) {
	if plain(b) {
		return Resolved{Told: b.Spec}, nil
	}
	spec, err := Read(b.Spec)
	if err != nil {
		return Resolved{Told: b.Spec}, err
	}
	r := Resolved{Spec: spec, Told: spec.JSON(), Secrets: map[string][]byte{}}
	for _, ref := range b.Credentials {
		all, err := reader.Secret(ctx, namespace, ref)
		if err != nil {
			return r, err
		}
		maps.Copy(r.Secrets, all)
	}
	values := map[string]string{}
	for _, ref := range spec.References {
		value, err := reader.Value(ctx, namespace, ref)
		if err != nil {
			return r, at(ref.Path, err)
		}
		if ref.Kind == providerspec.ConfigMap {
			values[ref.Path.String()] = string(value)
			continue
		}
		r.Secrets[ref.Path.String()] = value
	}
	r.Spec = spec.Fill(values)
	r.Told = r.Spec.JSON()
	return r, nil
}

// plain says whether there is nothing to resolve, as is mostly so; it may err on the other side, as where a key may be written
// with escapes.
func plain(b Blueprint) bool {
	return len(b.Credentials) == 0 && !bytes.Contains(b.Spec, []byte("KeyRef")) && !bytes.Contains(b.Spec, []byte(`"value"`)) &&
		!bytes.Contains(b.Spec, []byte(`\u`))
}

// at says in which field of the spec the trouble lies.
func at(path providerspec.Path, err error) error {
	failure, is := errors.AsType[*instance.Failure](err)
	if !is {
		return err
	}
	located := *failure
	located.Fields = []instance.Field{{Path: path.Shown(), Description: failure.Message}}
	return &located
}
