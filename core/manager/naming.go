package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/blueprint"
	"github.com/millwright-dev/millwright/core/controllers/orphan"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/references"
)

// naming finds the accounts of specs with all that these inherit and refer to.
func naming(objects client.Reader, reader *references.Reader) orphan.Naming {
	return func(ctx context.Context, namespace string, spec *clusterv1alpha1.MachineSpec) (string, driver.Machine, error) {
		drawn, err := blueprint.Draw(ctx, objects, namespace, spec)
		if err != nil {
			return drawn.Provider, driver.Machine{}, err
		}
		resolved, err := blueprint.Resolve(ctx, reader, namespace, drawn)
		return drawn.Provider, driver.Machine{Spec: resolved.Told, Secrets: resolved.Secrets}, err
	}
}
