package driver

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// ErrNoTemplate says that a driver does not tell what its VMs offer.
var ErrNoTemplate = errors.New("the driver does not tell what its VMs offer")

// InstanceTemplate returns what d says a VM of m's spec would offer. The spec is completed and
// judged as Prepare does it, and m's secrets go along only after that. It waits for the driver's
// answers. An error, ErrNoTemplate or *instance.Failure, means that nothing is known.
func InstanceTemplate(
	ctx context.Context, d *Driver, m wire.Machine, withheld []providerspec.Reference, allow func(completed []byte) *instance.Failure,
) (*driverv1alpha1.InstanceTemplate, error) {
	s, why := d.connection.Acquire()
	if why != "" {
		return nil, notReady(why)
	}
	defer s.Release()
	if !s.Capabilities.Has(driverv1alpha1.Feature_FEATURE_INSTANCE_TEMPLATE) {
		return nil, ErrNoTemplate
	}
	calls := specCalls{hooks{d}, s}
	spec, failure := calls.explain(ctx, question{spec: m.Spec, secrets: m.Secrets, withheld: withheld, allow: allow})
	if failure != nil {
		return nil, failure
	}
	request := &driverv1alpha1.GetInstanceTemplateRequest{
		Meta: s.Meta(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: spec, Secrets: m.Secrets},
	}
	var answer *driverv1alpha1.GetInstanceTemplateResponse
	failure = calls.call(ctx, request, func(ctx context.Context) (err error) {
		answer, err = s.Specs.GetInstanceTemplate(ctx, request)
		return err
	})
	switch {
	case failure != nil && failure.Class == instance.Unimplemented:
		return nil, ErrNoTemplate
	case failure != nil:
		return nil, failure
	}
	capacity := answer.GetTemplate().GetCapacity()
	if capacity["cpu"] == "" || capacity["memory"] == "" {
		return nil, wire.InvalidAnswer("template.capacity: cpu and memory are missing")
	}
	for name, value := range capacity {
		if _, err := resource.ParseQuantity(value); err != nil {
			return nil, wire.InvalidAnswer("template.capacity: " + name + " is no quantity")
		}
	}
	return answer.GetTemplate(), nil
}
