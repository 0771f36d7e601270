package manager

import (
	"context"
	"fmt"
	"time"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driverstatus"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// +kubebuilder:rbac:groups="",namespace=millwright-system,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=millwright-system,resources=configmaps,resourceNames=millwright-drivers,verbs=patch

// publishPause lies between two writes of the drivers' status: a driver that comes and goes is no
// reason for more.
const publishPause = 5 * time.Second

// addPublisher adds what keeps the drivers' status up to date, as long as this process leads. It
// needs a namespace to publish in.
func addPublisher(mgr ctrl.Manager, o Options, drivers *driver.Drivers) error {
	namespace, log := o.LeaderElection.Namespace, mgr.GetLogger().WithName("driverstatus")
	if namespace == "" {
		return nil
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		// Most drivers answer at once: they need not be told to be away first.
		due := time.After(publishPause)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-drivers.Changed():
			case <-due:
			}
			due = nil
			if err := publish(ctx, mgr.GetClient(), namespace, drivers); err != nil && ctx.Err() == nil {
				log.Error(err, "the status of drivers is not published")
				due = time.After(0)
			}
			select {
			case <-ctx.Done():
			case <-time.After(publishPause):
			}
		}
	}))
}

// publish writes the drivers' status as it is now.
func publish(ctx context.Context, writer client.Writer, namespace string, drivers *driver.Drivers) error {
	data, err := driverstatus.Encode(drivers.Statuses())
	if err != nil {
		return err
	}
	published := corev1ac.ConfigMap(driverstatus.ConfigMapName, namespace).WithData(data)
	if err := writer.Apply(ctx, published, client.ForceOwnership); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", namespace, driverstatus.ConfigMapName, err)
	}
	return nil
}

// schemas finds the schemas of drivers that were reached.
func schemas(drivers *driver.Drivers) func(provider string) (*providerspec.Schema, error) {
	return func(provider string) (*providerspec.Schema, error) {
		d, err := drivers.For(provider)
		if err != nil {
			return nil, err
		}
		return d.SpecSchema()
	}
}
