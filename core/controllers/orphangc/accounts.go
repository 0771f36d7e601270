package orphangc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/machinepages"
	"github.com/millwright-dev/millwright/core/orphan"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// accountFinder returns a machine that a spec in a namespace would make. This machine names the
// account in which the driver makes it. The result isMine is false where another driver makes
// it.
type accountFinder func(
	ctx context.Context, d *driver.Driver, namespace string, spec *clusterv1alpha1.MachineSpec,
) (m wire.Machine, isMine bool, err error)

// accountOf finds the account of a spec with all that this inherits and refers to. A spec that the
// operator's rules refuse leads to none.
func (c *collector) accountOf(
	ctx context.Context, d *driver.Driver, namespace string, spec *clusterv1alpha1.MachineSpec,
) (m wire.Machine, isMine bool, err error) {
	effective, err := specresolver.Inherit(ctx, c.cache, namespace, spec)
	if effective.Provider != d.Name() && effective.Provider != "" {
		return wire.Machine{}, false, nil
	}
	if err != nil {
		return wire.Machine{}, false, err
	}
	if checked, is := specresolver.Secretless(effective); is {
		return wire.Machine{Spec: checked.JSON()}, true, nil
	}
	known, err := d.SpecSchema()
	if err != nil {
		return wire.Machine{}, false, err
	}
	checked, err := c.Specs.Check(ctx, effective, known)
	if err != nil {
		return wire.Machine{}, false, err
	}
	secrets, _, err := checked.Secrets(ctx)
	return wire.Machine{Spec: checked.JSON(), Secrets: secrets}, true, err
}

// findAccounts returns the accounts of a driver that objects name, each once, with a machine that
// names it. Deployments and sets count as well as Machines: one that is scaled to zero still leads
// to what its Machines left behind. An error says which accounts are left out.
func (c *collector) findAccounts(ctx context.Context, d *driver.Driver) (map[uint64]wire.Machine, error) {
	specs, failed := c.listSpecs(ctx)
	found := map[uint64]wire.Machine{}
	for _, s := range specs {
		m, isMine, err := c.account(ctx, d, s.namespace, s.spec)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("find the account of a spec in namespace %s: %w", s.namespace, err))
			continue
		}
		if isMine {
			found[m.Account()] = m
		}
	}
	return found, failed
}

// specInNamespace is a spec that names an account.
type specInNamespace struct {
	namespace string
	spec      *clusterv1alpha1.MachineSpec
}

// listSpecs returns the specs of all objects. Of specs that name the same account in the same way
// it returns one. What another system works on leads to no account: no Secret is read for it
// (docs/adr/0021).
func (c *collector) listSpecs(ctx context.Context) (map[string]specInNamespace, error) {
	found := map[string]specInNamespace{}
	var failed error
	add := func(namespace string, spec *clusterv1alpha1.MachineSpec, otherSystem string, err error) {
		if otherSystem != "" {
			return
		}
		key, unreadable := json.Marshal([]any{namespace, spec.ProviderSpec, spec.ClusterRef})
		if err = errors.Join(err, unreadable); err != nil {
			failed = errors.Join(failed, fmt.Errorf("read a spec in namespace %s: %w", namespace, err))
			return
		}
		found[string(key)] = specInNamespace{namespace, spec}
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
		otherSystem, err := c.foreigners.WhyDeployment(ctx, d)
		add(d.Namespace, &d.Spec.Template.Spec, otherSystem, err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		otherSystem, err := c.foreigners.WhySet(ctx, set)
		add(set.Namespace, &set.Spec.Template.Spec, otherSystem, err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		otherSystem, err := c.foreigners.WhyMachine(ctx, m, c.live)
		add(m.Namespace, &m.Spec, otherSystem, err)
	}
	return found, failed
}

// cachedNames returns the uids and providerIDs that the cache's Machines name.
func (c *collector) cachedNames(ctx context.Context) (orphan.Names, error) {
	names := orphan.Names{}
	var machines clusterv1alpha1.MachineList
	if err := c.cache.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the Machines of the cache: %w", err)
	}
	addNames(names, machines.Items)
	return names, nil
}

// addLiveNames adds what Machines name on the API server itself.
func (c *collector) addLiveNames(ctx context.Context, names orphan.Names) error {
	_, err := machinepages.Each(ctx, c.live, func(page []clusterv1alpha1.Machine) { addNames(names, page) })
	return err
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
