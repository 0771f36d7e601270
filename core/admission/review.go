package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// review collects what there is to say about one object of a namespace.
type review struct {
	Options
	namespace string
	isUpdate  bool

	errors   field.ErrorList
	warnings []string
}

func (r *review) refuse(at *field.Path, why string) {
	// Values are not shown: some are secret.
	r.errors = append(r.errors, field.Invalid(at, field.OmitValueType{}, why))
}

// refuseEach refuses fields of the spec that is at a path.
func (r *review) refuseEach(at *field.Path, problems []instance.Field) {
	for _, problem := range problems {
		r.refuse(below(at, problem.Path), problem.Description)
	}
}

func (r *review) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// reviewSpec reviews the spec of a machine, or of those that a template makes.
func (r *review) reviewSpec(ctx context.Context, spec *clusterv1alpha1.MachineSpec, at *field.Path) {
	value := at.Child("providerSpec", "value")
	effective, err := specresolver.Inherit(ctx, r.Objects, r.namespace, spec)
	if failure, is := errors.AsType[*instance.Failure](err); is && failure.Class == instance.SpecInvalid {
		r.refuse(value, failure.Message)
		return
	}
	if err != nil {
		r.warn("The spec is not checked before its machines are made: %v", err)
		return
	}
	at = value.Child("cloudProviderSpec")
	read, d, _ := r.inspect(effective, at)
	if d != nil && len(r.errors) == 0 {
		r.askDriver(ctx, d, read, at)
	}
}

// reviewPart reviews a spec that others complete.
func (r *review) reviewPart(provider string, spec []byte, at *field.Path) {
	read, _, known := r.inspect(specresolver.Effective{Namespace: r.namespace, Provider: provider, Spec: spec}, at)
	if known != nil {
		r.refuseEach(at, known.CheckPart(read.JSON(), read.References))
	}
}

// inspect refuses what the operator's rules have against a spec. It returns the spec's driver if
// that can be asked now, and its schema.
func (r *review) inspect(
	e specresolver.Effective, at *field.Path,
) (providerspec.Spec, *driver.Driver, *providerspec.Schema) {
	read, wrong := providerspec.Read(e.Spec)
	if wrong != nil {
		r.refuseEach(at, wrong)
		return read, nil, nil
	}
	for _, ref := range read.References {
		if !r.Specs.MayRefer(r.namespace, ref.Namespace) {
			r.refuse(below(at, ref.Path.String()), notAllowed)
		}
	}
	var known *providerspec.Schema
	d, err := r.Drivers.For(e.Provider)
	if err == nil {
		err = d.Connected()
	}
	if err == nil {
		known, err = d.SpecSchema()
	}
	if err != nil {
		r.warn("The spec is not checked before its machines are made: %v", err)
		return read, nil, nil
	}
	r.refuseEach(at, r.Specs.Inspect(e, read, known))
	return read, d, known
}

// askDriver has the driver look at the spec.
func (r *review) askDriver(ctx context.Context, d *driver.Driver, read providerspec.Spec, at *field.Path) {
	for _, ref := range read.References {
		if ref.Kind == providerspec.ConfigMap {
			r.warn("What comes from ConfigMaps is not checked before the machines are made.")
			return
		}
	}
	wrong, err := d.CheckSpec(ctx, read)
	if err != nil {
		r.warn("The spec is not checked before its machines are made: %v", err)
	}
	r.refuseEach(at, wrong)
}

// reviewSecret refuses a Secret in a namespace that is not allowed.
func (r *review) reviewSecret(ref *clusterv1alpha1.SecretReference, at *field.Path) {
	if ref != nil && !r.Specs.MayRefer(r.namespace, ref.Namespace) {
		r.refuse(at.Child("namespace"), notAllowed)
	}
}

const notAllowed = "is in a namespace that the operator does not allow (--secret-namespaces)"

// below is the path of something in a spec.
func below(at *field.Path, path string) *field.Path {
	switch {
	case path == "":
		return at
	case strings.HasPrefix(path, "["):
		return field.NewPath(at.String() + path)
	}
	return at.Child(path)
}
