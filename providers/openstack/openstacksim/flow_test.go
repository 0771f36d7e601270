package openstacksim

import (
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	neutronnetworks "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// A cloud that stands before another one is the same to its users, and to its hooks.
func TestLifeOfAMachine(t *testing.T) {
	t.Run("in memory", func(t *testing.T) { lifeOfAMachine(open(t, Options{})) })
	t.Run("before another cloud", func(t *testing.T) {
		lifeOfAMachine(openBefore(t, serve(t, Options{})))
	})
}

func lifeOfAMachine(w *world) {
	t, ctx := w.T, w.Context()
	pages, err := flavors.ListDetail(w.compute, nil).AllPages(ctx)
	if err != nil {
		t.Fatalf("flavors: %v", err)
	}
	all, err := flavors.ExtractFlavors(pages)
	if err != nil || !slices.ContainsFunc(all, func(f flavors.Flavor) bool { return f.Name == "m1.micro" && f.RAM == 1024 }) {
		t.Errorf("flavors: %v, %v", all, err)
	}
	imagePages, err := images.List(w.image, images.ListOpts{Name: "Ubuntu Noble 24.04 (2024-08-01)"}).AllPages(ctx)
	if err != nil {
		t.Fatalf("images: %v", err)
	}
	if found, err := images.ExtractImages(imagePages); err != nil || len(found) != 1 || found[0].Properties["os_distro"] != "ubuntu" {
		t.Errorf("images: %v, %v", found, err)
	}
	networkPages, err := neutronnetworks.List(w.network, neutronnetworks.ListOpts{Name: "demo-net"}).AllPages(ctx)
	if err != nil {
		t.Fatalf("networks: %v", err)
	}
	if found, err := neutronnetworks.ExtractNetworks(networkPages); err != nil || len(found) != 1 || found[0].ID != networkID(w) {
		t.Errorf("networks: %v, %v", found, err)
	}

	portID, serverID := w.machine("a")
	s, err := servers.Get(ctx, w.compute, serverID).Extract()
	if err != nil || s.Status != "ACTIVE" || s.Metadata[ownership.Machine] != "a" || len(*s.Tags) != 2 || len(s.Addresses) != 1 || s.Flavor["original_name"] != "m1.tiny" {
		t.Errorf("server: %+v, %v", s, err)
	}
	f, err := floatingips.Create(ctx, w.network, floatingips.CreateOpts{
		FloatingNetworkID: w.externalID(), PortID: portID, Description: ownerOf("a").Description(),
	}).Extract()
	if err != nil || f.PortID != portID || f.FloatingIP == "" {
		t.Fatalf("floating IP: %+v, %v", f, err)
	}
	w.checkHooks(serverID, f.FloatingIP)

	if err := servers.Delete(ctx, w.compute, serverID).ExtractErr(); err != nil {
		t.Errorf("delete server: %v", err)
	}
	if _, err := servers.Get(ctx, w.compute, serverID).Extract(); !gophercloud.ResponseCodeIs(err, 404) {
		t.Errorf("get a server that is gone: %v", err)
	}
	p, err := neutronports.Get(ctx, w.network, portID).Extract()
	if err != nil || p.DeviceID != "" || p.Status != "DOWN" {
		t.Errorf("port after its server: %+v, %v", p, err)
	}
	if err := neutronports.Delete(ctx, w.network, portID).ExtractErr(); err != nil {
		t.Errorf("delete port: %v", err)
	}
	if f, err = floatingips.Get(ctx, w.network, f.ID).Extract(); err != nil || f.PortID != "" || f.Description != ownerOf("a").Description() {
		t.Errorf("floating IP after its port: %+v, %v", f, err)
	}
	if err := floatingips.Delete(ctx, w.network, f.ID).ExtractErr(); err != nil {
		t.Errorf("delete floating IP: %v", err)
	}
	totals, err := w.hooks.GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil || totals.GetResourcesLeft() != 0 || totals.GetVmsCreated() != 1 || totals.GetVmsDeleted() != 1 || totals.GetVmsPeak() != 1 {
		t.Errorf("totals: %v, %v", totals, err)
	}
}

// checkHooks looks at machine a through the hooks.
func (w *world) checkHooks(serverID, address string) {
	w.Helper()
	vms, err := w.hooks.ListVMs(w.Context(), &backendv1alpha1.ListVMsRequest{ClusterUid: cluster})
	if err != nil || len(vms.GetVms()) != 1 {
		w.Fatalf("list VMs: %v, %v", vms, err)
	}
	v := vms.GetVms()[0]
	if v.GetProviderId() != "openstack:///"+serverID || v.GetMachineUid() != "a" || string(v.GetUserData()) != "#cloud-config of a" ||
		v.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING || len(v.GetTags()) != 0 {
		w.Errorf("VM: %v", v)
	}
	if n := len(v.GetAddresses()); n != 3 || v.GetAddresses()[2].GetAddress() != address {
		w.Errorf("addresses: %v", v.GetAddresses())
	}
	found, err := w.hooks.ListResources(w.Context(), &backendv1alpha1.ListResourcesRequest{ClusterUid: cluster, MachineUid: "a"})
	if err != nil || len(found.GetResources()) != 3 {
		w.Errorf("resources: %v, %v", found, err)
	}
}
