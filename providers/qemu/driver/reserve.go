package driver

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/spec"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// taken is what the VMs of this host have among them.
type taken struct {
	memoryMiB int64
	// ports and addresses hold whose they are.
	ports     map[string]string
	addresses map[netip.Addr]bool
}

// reserve returns the record of a new VM. Memory, an address and ports are the VM's as soon as it
// is written: the caller has its turn of Store.Begin until then.
func (d *Driver) reserve(r *driverv1alpha1.CreateMachineRequest, want spec.Machine) (*vm.Record, error) {
	others, err := d.taken(r.GetMachine().GetUid())
	if err != nil {
		return nil, explain(err)
	}
	if free := d.options.MemoryMiB - others.memoryMiB; want.MemoryMiB() > free {
		return nil, quotaExceeded("memory", fmt.Sprintf(
			"VMs may have %dMi together (--memory), %dMi are free, and this one wants %dMi.", d.options.MemoryMiB, max(0, free), want.MemoryMiB()))
	}
	for _, port := range want.ForwardedPorts {
		if owner := others.ports[port.Host()]; owner != "" {
			return nil, quotaExceeded("port "+port.Host(), "The host's port "+port.Host()+" is forwarded to "+owner+".")
		}
	}
	record := &vm.Record{
		ClusterUID: r.GetMeta().GetClusterUid(), Namespace: r.GetMachine().GetNamespace(), Name: r.GetMachine().GetName(), UID: r.GetMachine().GetUid(),
		Spec: want, Tags: maps.Clone(r.GetTags()), Created: time.Now().UTC(),
	}
	if want.Network.Type == spec.BridgeNetwork {
		record.Address, err = freeAddress(d.options.Bridge, others.addresses)
	}
	return record, err
}

// taken adds up what all VMs have but that of a uid.
func (d *Driver) taken(but string) (taken, error) {
	records, err := d.store.Records()
	if err != nil {
		return taken{}, err
	}
	sum := taken{ports: map[string]string{}, addresses: map[netip.Addr]bool{}}
	for _, record := range records {
		if record.UID == but {
			continue
		}
		sum.memoryMiB += record.Spec.MemoryMiB()
		sum.addresses[record.Address] = true
		for _, port := range record.Spec.ForwardedPorts {
			sum.ports[port.Host()] = record.Namespace + "/" + record.Name
		}
	}
	return sum, nil
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
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, words, sdk.WithQuota(of, words))
}
