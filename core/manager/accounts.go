package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/orphangc"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// accountOf finds the accounts of specs with all that these inherit and refer to. A spec that the
// operator's rules refuse leads to none.
func accountOf(objects client.Reader, specs *specresolver.Resolver) orphangc.AccountOf {
	return func(ctx context.Context, d *driver.Driver, namespace string, spec *clusterv1alpha1.MachineSpec) (driver.Machine, bool, error) {
		effective, err := specresolver.Inherit(ctx, objects, namespace, spec)
		if effective.Provider != d.Name() && effective.Provider != "" {
			return driver.Machine{}, false, nil
		}
		if err != nil {
			return driver.Machine{}, false, err
		}
		if checked, is := specresolver.Secretless(effective); is {
			return driver.Machine{Spec: checked.JSON()}, true, nil
		}
		var known specresolver.Schema
		if known.Known, known.Why, err = d.SpecSchema(); err != nil {
			return driver.Machine{}, false, err
		}
		checked, err := specs.Check(ctx, effective, known)
		if err != nil {
			return driver.Machine{}, false, err
		}
		secrets, _, err := checked.Secrets(ctx)
		return driver.Machine{Spec: checked.JSON(), Secrets: secrets}, true, err
	}
}

// schemas finds the schemas of drivers that were reached.
func schemas(drivers *driver.Drivers) func(provider string) (specresolver.Schema, error) {
	return func(provider string) (known specresolver.Schema, err error) {
		d, err := drivers.For(provider)
		if err != nil {
			return known, err
		}
		known.Known, known.Why, err = d.SpecSchema()
		return known, err
	}
}
