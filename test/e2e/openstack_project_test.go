package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"github.com/millwright-dev/millwright/localcluster/stack"
	services "github.com/millwright-dev/millwright/test/openstack/deployment"
)

// onOpenStack is the stack of the tests on OpenStack: the simulator, or real services where
// services.Variable names them: see make test-openstack.
var onOpenStack = newLane(1, startOpenStack)

// openStackUser is a user of that stack, who also looks into his project by OpenStack's own APIs.
type openStackUser struct {
	*user
	compute, network, image *gophercloud.ServiceClient
	// ids are what the cloud has in place of the ids that MetaKube's users name.
	ids *strings.Replacer
}

func newOpenStackUser(t *testing.T) *openStackUser {
	t.Helper()
	u := &openStackUser{user: newUserOf(t, onOpenStack.enter(t, false))}
	u.logIn()
	u.ids = strings.NewReplacer(
		kubermaticSubnet, u.subnetID("kubermatic-92r62cx8j6"), metakubeSubnet, u.subnetID("metakube-mmxfcmgjkx"),
		metakubeGroup, u.groupID("metakube-mmxfcmgjkx"),
	)
	return u
}

// The ids in the manifests of MetaKube's users.
const (
	kubermaticSubnet = "86db31c3-d5dd-4a88-bc92-ab8a148062c8"
	metakubeSubnet   = "2969ae04-a429-4c1b-83e3-2f76fc3a342a"
	metakubeGroup    = "fe9dcd44-f08a-492a-9e64-4e38e1d51573"
)

func startOpenStack() (*fixture, error) {
	dir, err := os.MkdirTemp("", "mw-os-")
	if err != nil {
		return nil, err
	}
	// All tests but one work in the other region.
	provider, cloudArgs := stack.OpenStack(), []string{"--boot-latency=200ms", "--delete-latency=200ms", "--regional-ids=" + regionWithIDs}
	if file := os.Getenv(services.Variable); file != "" {
		provider, cloudArgs = stack.OpenStackServices(file), nil
	}
	return newFixture(stack.Options{
		BinDir: controlPlaneDir, CommandDir: commandDir, DeployDir: deployDir, Dir: dir, AuditLog: true, Provider: provider, CloudArgs: cloudArgs,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		ManagerArgs: []string{
			"-v=4", "--settle-period=1s", "--settled-interval=3s", "--orphan-interval=" + scanInterval.String(),
			// Of so few Machines any number may fail.
			"--max-unhealthy=100%",
		},
	})
}

// logIn opens the project in the way of OpenStack's own clients.
func (u *openStackUser) logIn() {
	u.t.Helper()
	environment := u.CloudEnvironment()
	provider, err := openstack.AuthenticatedClient(u.t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: environment["OS_AUTH_URL"], AllowReauth: true,
		Username: environment["OS_USERNAME"], Password: environment["OS_PASSWORD"], DomainName: environment["OS_USER_DOMAIN_NAME"],
		Scope: &gophercloud.AuthScope{ProjectName: environment["OS_PROJECT_NAME"], DomainName: environment["OS_PROJECT_DOMAIN_NAME"]},
	})
	if err != nil {
		u.t.Fatalf("log in to OpenStack: %v", err)
	}
	in := gophercloud.EndpointOpts{Region: environment["OS_REGION_NAME"]}
	for _, service := range []struct {
		open func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
		into **gophercloud.ServiceClient
	}{{openstack.NewComputeV2, &u.compute}, {openstack.NewNetworkV2, &u.network}, {openstack.NewImageV2, &u.image}} {
		if *service.into, err = service.open(provider, in); err != nil {
			u.t.Fatalf("find a service of OpenStack: %v", err)
		}
	}
	// The first version with all that is read here.
	u.compute.Microversion = "2.67"
}

// subnetID returns the id of the only subnet of a name.
func (u *openStackUser) subnetID(name string) string {
	u.t.Helper()
	pages, err := subnets.List(u.network, subnets.ListOpts{Name: name}).AllPages(u.t.Context())
	if err != nil {
		u.t.Fatalf("list subnets: %v", err)
	}
	found, err := subnets.ExtractSubnets(pages)
	if err != nil || len(found) != 1 {
		u.t.Fatalf("there are %d subnets of the name %s, want 1 (%v)", len(found), name, err)
	}
	return found[0].ID
}

// groupID returns the id of the server group of a name.
func (u *openStackUser) groupID(name string) string {
	u.t.Helper()
	for _, group := range u.serverGroups() {
		if group.Name == name {
			return group.ID
		}
	}
	u.t.Fatalf("there is no server group %s", name)
	return ""
}

// inventory is what there is in the project, by "kind id": what it is called, and what it is used
// for.
func (u *openStackUser) inventory(ctx context.Context) map[string]string {
	u.t.Helper()
	all := map[string]string{}
	for _, s := range u.servers(ctx) {
		all["server "+s.ID] = fmt.Sprint(s.Name, " ", s.Status, " ", s.Metadata)
	}
	for _, p := range u.ports(ctx, ports.ListOpts{}) {
		all["port "+p.ID] = fmt.Sprint(p.Name, " of ", p.DeviceID, " ", p.MACAddress)
	}
	for _, f := range u.floatingIPs(ctx) {
		all["floating IP "+f.ID] = fmt.Sprint(f.FloatingIP, " of ", f.PortID)
	}
	return all
}

func (u *openStackUser) servers(ctx context.Context) []servers.Server {
	u.t.Helper()
	pages, err := servers.List(u.compute, servers.ListOpts{}).AllPages(ctx)
	if err != nil {
		u.t.Fatalf("list servers: %v", err)
	}
	found, err := servers.ExtractServers(pages)
	if err != nil {
		u.t.Fatalf("list servers: %v", err)
	}
	return found
}

// ports returns those that routers do not have.
func (u *openStackUser) ports(ctx context.Context, o ports.ListOpts) []ports.Port {
	u.t.Helper()
	pages, err := ports.List(u.network, o).AllPages(ctx)
	if err != nil {
		u.t.Fatalf("list ports: %v", err)
	}
	found, err := ports.ExtractPorts(pages)
	if err != nil {
		u.t.Fatalf("list ports: %v", err)
	}
	return slices.DeleteFunc(found, func(p ports.Port) bool { return strings.HasPrefix(p.DeviceOwner, "network:") })
}

func (u *openStackUser) floatingIPs(ctx context.Context) []floatingips.FloatingIP {
	u.t.Helper()
	pages, err := floatingips.List(u.network, floatingips.ListOpts{}).AllPages(ctx)
	if err != nil {
		u.t.Fatalf("list floating IPs: %v", err)
	}
	found, err := floatingips.ExtractFloatingIPs(pages)
	if err != nil {
		u.t.Fatalf("list floating IPs: %v", err)
	}
	return found
}

// machineServer is a server as OpenStack's APIs show it to who asks for each part: names where
// users write names.
type machineServer struct {
	Name, Status, Flavor, Image, Zone string
	Metadata                          map[string]string
	Tags                              []string
	ServerGroups                      []string
	Ports                             []machinePort
}

type machinePort struct {
	Name, Description, Status, Network, Subnet string
	SecurityGroups                             []string
	FloatingIPFrom, FloatingIPDescription      string
	// Addresses are the fixed ones and then the floating one.
	Addresses []string
}

// server reads the server of a providerID.
func (u *openStackUser) server(providerID string) machineServer {
	u.t.Helper()
	id := strings.TrimPrefix(providerID, "openstack:///")
	found, err := servers.Get(u.t.Context(), u.compute, id).Extract()
	if err != nil {
		u.t.Fatalf("read server %s: %v", id, err)
	}
	shown := machineServer{
		Name: found.Name, Status: found.Status, Zone: found.AvailabilityZone, Metadata: found.Metadata,
		Image: u.imageName(fmt.Sprint(found.Image["id"])), ServerGroups: u.groupsOf(id),
	}
	shown.Flavor, _ = found.Flavor["original_name"].(string)
	if found.Tags != nil {
		shown.Tags = slices.Sorted(slices.Values(*found.Tags))
	}
	for _, p := range u.ports(u.t.Context(), ports.ListOpts{DeviceID: id}) {
		shown.Ports = append(shown.Ports, u.port(p))
	}
	return shown
}

func (u *openStackUser) port(p ports.Port) machinePort {
	u.t.Helper()
	shown := machinePort{Name: p.Name, Description: p.Description, Status: p.Status, Network: u.networkName(p.NetworkID)}
	for _, fixed := range p.FixedIPs {
		shown.Subnet = fixed.SubnetID
		shown.Addresses = append(shown.Addresses, fixed.IPAddress)
	}
	for _, id := range p.SecurityGroups {
		group, err := groups.Get(u.t.Context(), u.network, id).Extract()
		if err != nil {
			u.t.Fatalf("read security group %s: %v", id, err)
		}
		shown.SecurityGroups = append(shown.SecurityGroups, group.Name)
	}
	for _, f := range u.floatingIPs(u.t.Context()) {
		if f.PortID == p.ID {
			shown.FloatingIPFrom, shown.FloatingIPDescription = u.networkName(f.FloatingNetworkID), f.Description
			shown.Addresses = append(shown.Addresses, f.FloatingIP)
		}
	}
	return shown
}

func (u *openStackUser) networkName(id string) string {
	u.t.Helper()
	found, err := networks.Get(u.t.Context(), u.network, id).Extract()
	if err != nil {
		u.t.Fatalf("read network %s: %v", id, err)
	}
	return found.Name
}

// networkID returns the id of the only network of a name.
func (u *openStackUser) networkID(name string) string {
	u.t.Helper()
	pages, err := networks.List(u.network, networks.ListOpts{Name: name}).AllPages(u.t.Context())
	if err != nil {
		u.t.Fatalf("list networks: %v", err)
	}
	found, err := networks.ExtractNetworks(pages)
	if err != nil || len(found) != 1 {
		u.t.Fatalf("there are %d networks of the name %s, want 1 (%v)", len(found), name, err)
	}
	return found[0].ID
}

// flavorID returns the id of the flavor of a name.
func (u *openStackUser) flavorID(name string) string {
	u.t.Helper()
	pages, err := flavors.ListDetail(u.compute, nil).AllPages(u.t.Context())
	if err != nil {
		u.t.Fatalf("list flavors: %v", err)
	}
	found, err := flavors.ExtractFlavors(pages)
	if err != nil {
		u.t.Fatalf("list flavors: %v", err)
	}
	at := slices.IndexFunc(found, func(f flavors.Flavor) bool { return f.Name == name })
	if at < 0 {
		u.t.Fatalf("there is no flavor %s", name)
	}
	return found[at].ID
}

// imageID returns the id of the only image of a name.
func (u *openStackUser) imageID(name string) string {
	u.t.Helper()
	pages, err := images.List(u.image, images.ListOpts{Name: name}).AllPages(u.t.Context())
	if err != nil {
		u.t.Fatalf("list images: %v", err)
	}
	found, err := images.ExtractImages(pages)
	if err != nil || len(found) != 1 {
		u.t.Fatalf("there are %d images of the name %s, want 1 (%v)", len(found), name, err)
	}
	return found[0].ID
}

func (u *openStackUser) imageName(id string) string {
	u.t.Helper()
	found, err := images.Get(u.t.Context(), u.image, id).Extract()
	if err != nil {
		u.t.Fatalf("read image %s: %v", id, err)
	}
	return found.Name
}

// groupsOf returns the ids of the server groups that have the server among their members.
func (u *openStackUser) groupsOf(id string) []string {
	u.t.Helper()
	var found []string
	for _, group := range u.serverGroups() {
		if slices.Contains(group.Members, id) {
			found = append(found, group.ID)
		}
	}
	return found
}

func (u *openStackUser) serverGroups() []servergroups.ServerGroup {
	u.t.Helper()
	pages, err := servergroups.List(u.compute, nil).AllPages(u.t.Context())
	if err != nil {
		u.t.Fatalf("list server groups: %v", err)
	}
	all, err := servergroups.ExtractServerGroups(pages)
	if err != nil {
		u.t.Fatalf("list server groups: %v", err)
	}
	return all
}

// strangers makes what a person could have made by hand in the same project: a server on a port of
// its own with a floating IP, and a port that nothing uses. It goes when the test ends, and only
// then.
func (u *openStackUser) strangers() {
	u.t.Helper()
	ctx := u.t.Context()
	subnet := ports.IP{SubnetID: u.subnetID("metakube-mmxfcmgjkx")}
	network := u.networkID("metakube-mmxfcmgjkx")
	var made []ports.Port
	for _, name := range []string{"by-hand", "for-later"} {
		p, err := ports.Create(ctx, u.network, ports.CreateOpts{Name: name, NetworkID: network, FixedIPs: []ports.IP{subnet}}).Extract()
		if err != nil {
			u.t.Fatalf("make a port by hand: %v", err)
		}
		made = append(made, *p)
	}
	f, err := floatingips.Create(ctx, u.network, floatingips.CreateOpts{FloatingNetworkID: u.networkID("ext-net"), PortID: made[0].ID}).Extract()
	if err != nil {
		u.t.Fatalf("make a floating IP by hand: %v", err)
	}
	s, err := servers.Create(ctx, u.compute, servers.CreateOpts{
		Name: "by-hand", FlavorRef: u.flavorID("m1.tiny"), ImageRef: u.imageID("tiny-raw"), Networks: []servers.Network{{Port: made[0].ID}},
	}, nil).Extract()
	if err != nil {
		u.t.Fatalf("make a server by hand: %v", err)
	}
	u.t.Cleanup(func() { u.removeStrangers(s.ID, f.ID, made) })
	eventually(u.t, "the server made by hand to run", func(ctx context.Context) error {
		if now := u.inventory(ctx)["server "+s.ID]; !strings.Contains(now, "ACTIVE") {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
}

func (u *openStackUser) removeStrangers(server, floatingIP string, made []ports.Port) {
	ctx := context.WithoutCancel(u.t.Context())
	if err := servers.Delete(ctx, u.compute, server).ExtractErr(); err != nil {
		u.t.Errorf("delete the server made by hand: %v", err)
	}
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	if err := gophercloud.WaitFor(limited, func(ctx context.Context) (bool, error) {
		err := servers.Get(ctx, u.compute, server).Err
		return gophercloud.ResponseCodeIs(err, http.StatusNotFound), nil
	}); err != nil {
		u.t.Errorf("wait for the server made by hand to go: %v", err)
	}
	if err := floatingips.Delete(ctx, u.network, floatingIP).ExtractErr(); err != nil {
		u.t.Errorf("delete the floating IP made by hand: %v", err)
	}
	for _, p := range made {
		if err := ports.Delete(ctx, u.network, p.ID).ExtractErr(); err != nil {
			u.t.Errorf("delete a port made by hand: %v", err)
		}
	}
}

// manifestOf returns a MachineDeployment of MetaKube's users as they have it, but for what no API
// server takes and where the cloud is.
func (u *openStackUser) manifestOf(seed string) string {
	u.t.Helper()
	manifest, err := os.ReadFile(seeds + "/" + seed + ".yaml")
	if err != nil {
		u.t.Fatal(err)
	}
	return u.ids.Replace(strings.NewReplacer(
		"kind: machineDeployment\n", "kind: MachineDeployment\n",
		"https://api.dbl.cloud.syseleven.net:5000/v3", u.CloudEnvironment()["OS_AUTH_URL"],
	).Replace(string(manifest)))
}

// credentials writes the Secret from which the tests' Cluster takes its credentials: the
// environment's, changed.
func (u *openStackUser) credentials(change map[string]string) {
	u.t.Helper()
	all := u.CloudEnvironment()
	maps.Copy(all, change)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "  %s: %q\n", key, all[key])
	}
	u.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: cloud}\nstringData:\n" + b.String())
}
