package orphan

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/orphan"
)

// accounts are those of a driver that objects name, each once, with what names it. Deployments and sets count as well as
// Machines: one that is scaled to zero still leads to what its Machines left behind.
func (c *collector) accounts(ctx context.Context, provider string) (map[uint64]driver.Machine, error) {
	found := map[uint64]driver.Machine{}
	add := func(spec *clusterv1alpha1.MachineSpec) {
		value := &spec.ProviderSpec.Value
		if value.CloudProvider != provider {
			return
		}
		m := driver.Machine{Spec: value.CloudProviderSpec.Raw}
		found[driver.Account(m)] = m
	}
	var deployments clusterv1alpha1.MachineDeploymentList
	var sets clusterv1alpha1.MachineSetList
	var machines clusterv1alpha1.MachineList
	for _, list := range []client.ObjectList{&deployments, &sets, &machines} {
		if err := c.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read who names accounts: %w", err)
		}
	}
	for i := range deployments.Items {
		add(&deployments.Items[i].Spec.Template.Spec)
	}
	for i := range sets.Items {
		add(&sets.Items[i].Spec.Template.Spec)
	}
	for i := range machines.Items {
		add(&machines.Items[i].Spec)
	}
	return found, nil
}

// page is how many Machines one live request asks for.
const page = 500

// cached are the uids and providerIDs that the cache's Machines name.
func (c *collector) cached(ctx context.Context) (orphan.Names, error) {
	names := orphan.Names{}
	var machines clusterv1alpha1.MachineList
	if err := c.cache.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the Machines of the cache: %w", err)
	}
	addNames(names, machines.Items)
	return names, nil
}

// addLive adds those that Machines name on the API server itself, all of them or none.
func (c *collector) addLive(ctx context.Context, names orphan.Names) error {
	for token := ""; ; {
		var machines clusterv1alpha1.MachineList
		if err := c.live.List(ctx, &machines, client.Limit(page), client.Continue(token)); err != nil {
			return fmt.Errorf("read the Machines of the API server: %w", err)
		}
		addNames(names, machines.Items)
		if token = machines.Continue; token == "" {
			return nil
		}
	}
}

func addNames(names orphan.Names, machines []clusterv1alpha1.Machine) {
	for i := range machines {
		for _, name := range []*string{machines[i].Spec.MachineUID, machines[i].Spec.ProviderID} {
			if name != nil {
				names.Add(*name)
			}
		}
	}
}
