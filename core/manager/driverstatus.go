package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driverstatus"
)

// +kubebuilder:rbac:groups="",namespace=millwright-system,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=millwright-system,resources=configmaps,resourceNames=millwright-drivers,verbs=patch

// publishPause lies between two writes of the drivers' status: a driver that comes and goes is no
// reason for more.
const publishPause = 5 * time.Second

// publisher keeps the drivers' status up to date, as long as this process leads.
type publisher struct {
	client    client.Client
	drivers   *driver.Drivers
	namespace string
	clock     clock.WithTicker
	log       logr.Logger
}

// addPublisher adds the publisher of the drivers' status; it needs a namespace to publish in.
func addPublisher(mgr ctrl.Manager, o Options, drivers *driver.Drivers) error {
	if o.LeaderElection.Namespace == "" {
		return nil
	}
	p := &publisher{
		client: mgr.GetClient(), drivers: drivers, namespace: o.LeaderElection.Namespace, clock: clock.RealClock{},
		log: mgr.GetLogger().WithName("roster"),
	}
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("add the publisher of the drivers: %w", err)
	}
	return nil
}

// Start publishes until ctx ends.
func (p *publisher) Start(ctx context.Context) error {
	// Most drivers answer at once: they need not be told to be away first.
	p.await(ctx, p.drivers.Changed())
	for ctx.Err() == nil {
		err := p.publish(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.Error(err, "the roster of drivers is not published")
		}
		p.await(ctx, nil)
		if err != nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.drivers.Changed():
		}
	}
	return nil
}

// await waits for publishPause, or until changed fires or ctx ends.
func (p *publisher) await(ctx context.Context, changed <-chan struct{}) {
	timer := p.clock.NewTimer(publishPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C():
	}
}

// publish writes the drivers' status as it is now.
func (p *publisher) publish(ctx context.Context) error {
	data, err := driverstatus.Encode(p.drivers.Statuses())
	if err != nil {
		return err
	}
	published := corev1ac.ConfigMap(driverstatus.ConfigMapName, p.namespace).WithData(data)
	if err := p.client.Apply(ctx, published, client.ForceOwnership); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", p.namespace, driverstatus.ConfigMapName, err)
	}
	return nil
}
