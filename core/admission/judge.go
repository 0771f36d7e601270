package admission

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/schema"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// spec judges the spec of a machine, or of those that a template makes.
func (h *handler) spec(ctx context.Context, namespace string, spec *clusterv1alpha1.MachineSpec, at *field.Path) verdict {
	var v verdict
	value := at.Child("providerSpec", "value")
	effective, err := specresolver.Inherit(ctx, h.Objects, namespace, spec)
	if failure, is := errors.AsType[*instance.Failure](err); is && failure.Class == instance.SpecInvalid {
		v.refuse(value, failure.Message)
		return v
	}
	if err != nil {
		v.warn("The spec is not checked before its machines are made: %v", err)
		return v
	}
	inSpec := value.Child("cloudProviderSpec")
	read, err := providerspec.Read(effective.Spec)
	if err != nil {
		v.wrong(inSpec, err)
		return v
	}
	h.namespaces(&v, namespace, read.References, inSpec)
	d, known := h.driver(&v, effective.Provider)
	if d == nil {
		return v
	}
	for _, problem := range h.Specs.Inspect(effective, read, known) {
		v.refuse(below(inSpec, problem.Path), problem.Description)
	}
	if len(v.errors) > 0 {
		return v
	}
	h.ask(ctx, &v, d, read, inSpec)
	return v
}

// ask has the driver look at the spec.
func (h *handler) ask(ctx context.Context, v *verdict, d *driver.Driver, read providerspec.Spec, at *field.Path) {
	question := driver.Question{Spec: read.JSON()}
	for _, ref := range read.References {
		question.Withheld = append(question.Withheld, ref.Path)
		if ref.Kind == providerspec.ConfigMap {
			v.warn("What comes from ConfigMaps is not checked before the machines are made.")
			return
		}
	}
	found, err := d.CheckSpec(ctx, question)
	if err != nil {
		v.warn("The spec is not checked before its machines are made: %v", err)
		return
	}
	for _, wrong := range found {
		v.refuse(below(at, wrong.Path), wrong.Description)
	}
}

// part judges a spec that others complete.
func (h *handler) part(namespace, provider string, spec []byte, at *field.Path) verdict {
	var v verdict
	read, err := providerspec.Read(spec)
	if err != nil {
		v.wrong(at, err)
		return v
	}
	h.namespaces(&v, namespace, read.References, at)
	d, known := h.driver(&v, provider)
	if d == nil {
		return v
	}
	effective := specresolver.Effective{Namespace: namespace, Provider: provider, Spec: spec}
	for _, problem := range h.Specs.Inspect(effective, read, known) {
		v.refuse(below(at, problem.Path), problem.Description)
	}
	if known.Known == nil {
		return v
	}
	scope := schema.Scope{Partial: true}
	for _, ref := range read.References {
		scope.Withheld = append(scope.Withheld, ref.Path)
	}
	for _, problem := range known.Known.Check(read.JSON(), scope) {
		v.refuse(below(at, problem.Path), problem.Description)
	}
	return v
}

// driver returns the provider's driver if it can be asked now, and its schema; else it says why
// not, and returns nil.
func (h *handler) driver(v *verdict, provider string) (*driver.Driver, specresolver.Schema) {
	var known specresolver.Schema
	d, err := h.Drivers.For(provider)
	if err == nil {
		err = d.Connected()
	}
	if err == nil {
		known.Known, known.Why, err = d.SpecSchema()
	}
	if err != nil {
		v.warn("The spec is not checked before its machines are made: %v", err)
		return nil, known
	}
	return d, known
}

// namespaces refuses references into namespaces that are not allowed.
func (h *handler) namespaces(v *verdict, home string, refs []providerspec.Reference, at *field.Path) {
	for _, ref := range refs {
		if !h.Specs.MayRefer(home, ref.Namespace) {
			v.refuse(below(at, ref.Path.String()), notAllowed)
		}
	}
}

// secret refuses a Secret in a namespace that is not allowed.
func (h *handler) secret(v *verdict, home string, ref *clusterv1alpha1.SecretReference, at *field.Path) {
	if ref != nil && !h.Specs.MayRefer(home, ref.Namespace) {
		v.refuse(at.Child("namespace"), notAllowed)
	}
}

const notAllowed = "is in a namespace that the operator does not allow (--secret-namespaces)"

// wrong refuses what cannot be read.
func (v *verdict) wrong(at *field.Path, err error) {
	problems, _ := errors.AsType[providerspec.Problems](err)
	for _, problem := range problems {
		v.refuse(below(at, problem.Path), problem.Description)
	}
}

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
