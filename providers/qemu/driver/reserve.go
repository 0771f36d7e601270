package driver

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/millwright-dev/millwright/providers/qemu/spec"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// reserve returns the record of a new VM. Memory, an address and ports are the VM's as soon as it
// is written: the caller has its turn of Store.Begin until then.
func (d *Driver) reserve(r *sdk.CreateMachineRequest, want spec.Machine) (*vm.Record, error) {
	vms, err := d.store.VMs()
	if err != nil {
		return nil, explain(err)
	}
	free, owners, addresses := d.options.MemoryMiB, map[string]string{}, map[netip.Addr]bool{}
	for _, other := range vms {
		if other.UID == r.GetMachine().GetUid() {
			continue // it never ran, and is made anew
		}
		free -= other.Spec.MemoryMiB()
		addresses[other.Address] = true
		for _, port := range other.Spec.ForwardedPorts {
			owners[port.Host()] = other.Namespace + "/" + other.Name
		}
	}
	if want.MemoryMiB() > free {
		return nil, quotaExceeded("memory", fmt.Sprintf(
			"VMs may have %dMi together (--memory), %dMi are free, and this one wants %dMi.", d.options.MemoryMiB, max(0, free), want.MemoryMiB()))
	}
	for _, port := range want.ForwardedPorts {
		if owner := owners[port.Host()]; owner != "" {
			return nil, quotaExceeded("port "+port.Host(), "The host's port "+port.Host()+" is forwarded to "+owner+".")
		}
	}
	record := &vm.Record{
		ClusterUID: r.GetMeta().GetClusterUid(), Namespace: r.GetMachine().GetNamespace(), Name: r.GetMachine().GetName(), UID: r.GetMachine().GetUid(),
		Spec: want, Tags: maps.Clone(r.GetTags()), Created: time.Now().UTC(),
	}
	if want.Network.Type == spec.BridgeNetwork {
		record.Address, err = freeAddress(d.options.Bridge, addresses)
	}
	return record, err
}

// freeAddress returns the first address of the bridge's range that no VM has.
func freeAddress(bridge vm.Bridge, taken map[netip.Addr]bool) (netip.Addr, error) {
	for a := bridge.First.Addr(); a.IsValid() && a.Compare(bridge.Last) <= 0; a = a.Next() {
		if !taken[a] {
			return a, nil
		}
	}
	return netip.Addr{}, quotaExceeded("addresses", fmt.Sprintf("All addresses from %s to %s are taken (--bridge-addresses).", bridge.First.Addr(), bridge.Last))
}

func quotaExceeded(of, words string) error {
	return sdk.NewError(sdk.ReasonQuotaExceeded, words, sdk.WithQuota(of, words))
}
