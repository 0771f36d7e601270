package orphan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/orphan"
)

// Naming says in which of a driver's accounts a machine of a spec in a namespace would be made;
// mine is false where another driver makes it.
type Naming func(
	ctx context.Context, d *driver.Driver, namespace string, spec *clusterv1alpha1.MachineSpec,
) (m driver.Machine, mine bool, err error)

// asWritten takes a spec by its word.
func asWritten(
	_ context.Context, d *driver.Driver, _ string, spec *clusterv1alpha1.MachineSpec,
) (m driver.Machine, mine bool, err error) {
	value := &spec.ProviderSpec.Value
	return driver.Machine{Spec: value.CloudProviderSpec.Raw}, value.CloudProvider == d.Name(), nil
}

// accounts are those of a driver that objects name, each once, with what names it. Deployments and
// sets count as well as Machines: one that is scaled to zero still leads to what its Machines left
// behind. An error says which are left out.
func (c *collector) accounts(ctx context.Context, d *driver.Driver) (map[uint64]driver.Machine, error) {
	specs, failed := c.specs(ctx)
	found := map[uint64]driver.Machine{}
	for _, s := range specs {
		m, mine, err := c.Naming(ctx, d, s.namespace, s.spec)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("find the account of a spec in namespace %s: %w", s.namespace, err))
			continue
		}
		if mine {
			found[driver.Account(m)] = m
		}
	}
	return found, failed
}

// named is a spec that names an account.
type named struct {
	namespace string
	spec      *clusterv1alpha1.MachineSpec
}

// specs are those of all objects, of those that name the same the same way only one. What another
// system works on leads to no account: no Secret is read for it (docs/adr/0021).
func (c *collector) specs(ctx context.Context) (map[string]named, error) {
	found := map[string]named{}
	var failed error
	add := func(namespace string, spec *clusterv1alpha1.MachineSpec, theirs string, err error) {
		if theirs != "" {
			return
		}
		way, unreadable := json.Marshal([]any{namespace, spec.ProviderSpec, spec.ClusterRef})
		if err = errors.Join(err, unreadable); err != nil {
			failed = errors.Join(failed, fmt.Errorf("read a spec in namespace %s: %w", namespace, err))
			return
		}
		found[string(way)] = named{namespace, spec}
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
		d := &deployments.Items[i]
		theirs, err := c.foreigners.WhyDeployment(ctx, d)
		add(d.Namespace, &d.Spec.Template.Spec, theirs, err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		theirs, err := c.foreigners.WhySet(ctx, set)
		add(set.Namespace, &set.Spec.Template.Spec, theirs, err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		theirs, err := c.foreigners.WhyMachine(ctx, m, c.live)
		add(m.Namespace, &m.Spec, theirs, err)
	}
	return found, failed
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
		names.Add(machines[i].Status.ProviderID)
		for _, name := range []*string{machines[i].Spec.MachineUID, machines[i].Spec.ProviderID} {
			if name != nil {
				names.Add(*name)
			}
		}
		if foreign.Of(&machines[i]) != (foreign.Mark{}) {
			// Other systems know a VM by the uid of its Machine.
			names.Add(string(machines[i].UID))
		}
	}
}
