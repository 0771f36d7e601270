package driver

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// realServices are a driver on the services that MILLWRIGHT_OPENSTACK tells of (make
// test-openstack), and a machine of it.
type realServices struct {
	*testing.T
	*Driver
	services *openstacksim.Upstream
	in       *session.Session
	owner    ownership.Owner
	provider *driverv1alpha1.ProviderContext
}

// realSettle is how long a request may be on its way here.
const realSettle = 5 * time.Second

func onRealServices(t *testing.T, more map[string]any) *realServices {
	t.Helper()
	file := os.Getenv("MILLWRIGHT_OPENSTACK")
	if file == "" {
		t.Skip("no real services: MILLWRIGHT_OPENSTACK is not set, see make test-openstack")
	}
	services, err := openstacksim.ReadUpstream(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &realServices{T: t, services: services, owner: ownership.Owner{Cluster: "real-" + uuid.NewString(), Namespace: "default", Name: "real", UID: uuid.NewString()}}
	r.provider = &driverv1alpha1.ProviderContext{Secrets: map[string][]byte{"password": []byte(services.Password)}}
	r.respecify(more)
	r.restart()
	account, err := spec.ReadAccount(r.provider.GetProviderSpec(), r.provider.GetSecrets(), spec.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if r.in, err = r.sessions.Open(t.Context(), account, ""); err != nil {
		t.Fatal(err)
	}
	return r
}

// respecify has the machine's spec be the least one, changed by these fields.
func (r *realServices) respecify(more map[string]any) {
	r.Helper()
	fields := map[string]any{
		"identityEndpoint": r.services.IdentityEndpoint, "region": r.services.Region, "domainName": "Default", "username": r.services.Member,
		"projectName": r.services.Member, "flavor": "m1.tiny", "image": "tiny-raw", "network": r.services.Member + "-net",
	}
	maps.Copy(fields, more)
	raw, err := json.Marshal(fields)
	if err != nil {
		r.Fatal(err)
	}
	r.provider.ProviderSpec = raw
}

// restart is a driver that remembers nothing.
func (r *realServices) restart() {
	r.Driver = New(session.NewPool(session.Options{}), Options{Version: "test", CreateSettle: realSettle, PollInterval: 500 * time.Millisecond})
}

func (r *realServices) meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "r", ClusterUid: r.owner.Cluster}
}

func (r *realServices) ref() *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: r.owner.Namespace, Name: r.owner.Name, Uid: r.owner.UID}
}

func (r *realServices) create() (*driverv1alpha1.Machine, error) {
	return r.CreateMachine(r.Context(), &driverv1alpha1.CreateMachineRequest{Meta: r.meta(), Machine: r.ref(), Provider: r.provider, UserData: []byte("#cloud-config\n")})
}

func (r *realServices) status() (*driverv1alpha1.Machine, error) {
	return r.GetMachineStatus(r.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: r.meta(), Machine: r.ref(), Provider: r.provider})
}

// await asks until check is content.
func (r *realServices) await(what string, check func() (done bool, seen any)) {
	r.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(3 * time.Minute); ; {
		done, seen := check()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			r.Fatalf("waited in vain for %s: %v", what, seen)
		}
	}
}

// settled asks for the machine until the answer is another one than to wait.
func (r *realServices) settled() (m *driverv1alpha1.Machine, err error) {
	r.Helper()
	r.await("an answer", func() (bool, any) {
		m, err = r.create()
		return status.Code(err) != codes.Aborted, err
	})
	return m, err
}

// remove deletes the machine, and looks whether anything of the cluster is left.
func (r *realServices) remove() {
	r.Helper()
	r.await("the end", func() (bool, any) {
		left, err := r.DeleteMachine(r.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: r.meta(), Machine: r.ref(), Provider: r.provider})
		return left == nil && err == nil, err
	})
	listed, err := r.ListMachines(r.Context(), &driverv1alpha1.ListMachinesRequest{Meta: r.meta(), Provider: r.provider, PageSize: 100})
	if err != nil || len(listed.GetMachines()) > 0 {
		r.Errorf("left are %v, %v", listed.GetMachines(), err)
	}
	if all := r.volumes(); len(all) > 0 {
		r.Errorf("volumes left: %v", all)
	}
}

// volumes are those of the cluster.
func (r *realServices) volumes() []volumes.Volume {
	r.Helper()
	pages, err := volumes.List(r.in.Volume, volumes.ListOpts{Metadata: map[string]string{ownership.Cluster: r.owner.Cluster}}).AllPages(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	all, err := volumes.ExtractVolumes(pages)
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// A machine with all that is new to a spec: each field is in what the services say.
func TestFieldsOnRealServices(t *testing.T) {
	r := onRealServices(t, map[string]any{
		"network": "", "sshKeyName": "millwright-test", "podNetworkCIDRs": []string{"10.244.0.0/16"},
		"ports":          []map[string]any{{"network": "demo-net", "subnet": "demo-subnet", "tags": []string{"billing", "team-a"}}},
		"rootDiskSizeGB": 2, "rootDiskVolumeType": "ssd", "rootDiskAvailabilityZone": "nova",
		"flavor": "m1.ephemeral", "additionalBlockDevices": []map[string]any{
			{"name": "data", "sizeGiB": 1, "storage": map[string]any{"volume": map[string]any{"type": "ssd", "availabilityZone": "nova"}}},
			{"name": "cache", "sizeGiB": 8, "storage": map[string]any{"type": "Local"}},
		},
	})
	_ = keypairs.Delete(t.Context(), r.in.Compute, "millwright-test", nil).ExtractErr() // of a run that was broken off
	if err := keypairs.Create(t.Context(), r.in.Compute, keypairs.CreateOpts{Name: "millwright-test"}).Err; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keypairs.Delete(t.Context(), r.in.Compute, "millwright-test", nil).ExtractErr() })
	if _, err := r.create(); status.Code(err) != codes.Aborted {
		t.Fatalf("its volumes are being made: %v", err)
	}
	r.restart() // killed while Cinder works
	if _, err := r.settled(); err != nil {
		t.Fatal(err)
	}
	var m *driverv1alpha1.Machine
	r.await("it to run", func() (bool, any) {
		var err error
		m, err = r.status()
		return m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_RUNNING, err
	})
	id := serverIDOf(&driverv1alpha1.DeleteMachineRequest{ProviderId: m.GetProviderId()})
	server, err := servers.Get(t.Context(), r.in.Compute, id).Extract()
	if err != nil || server.KeyName != "millwright-test" || len(server.AttachedVolumes) != 2 {
		t.Errorf("the server is %+v, %v", server, err)
	}
	for _, v := range r.volumes() {
		if v.VolumeType != "ssd" || v.AvailabilityZone != "nova" || v.Status != "in-use" || !strings.HasPrefix(v.Name, "real-") || v.Metadata[ownership.Machine] != r.owner.UID {
			t.Errorf("a volume is %+v", v)
		}
	}
	if n := len(r.volumes()); n != 2 {
		t.Errorf("%d volumes", n)
	}
	pages, err := ports.List(r.in.Network, ports.ListOpts{DeviceID: id}).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := ports.ExtractPorts(pages)
	if err != nil || len(found) != 1 || len(found[0].AllowedAddressPairs) != 1 || found[0].AllowedAddressPairs[0].IPAddress != "10.244.0.0/16" ||
		!slices.Contains(found[0].Tags, "billing") || !slices.Contains(found[0].Tags, "team-a") {
		t.Errorf("the port is %+v, %v", found, err)
	}
	r.restart()
	r.remove()
}

// A server that the scheduler finds no host for is a create that was refused, and costs no second
// port.
func TestNoRoomOnRealServices(t *testing.T) {
	r := onRealServices(t, map[string]any{"flavor": "m1.huge"})
	m, err := r.create()
	if err != nil || m.GetProviderId() != "" {
		t.Fatalf("what Nova has taken: %v, %v", m, err)
	}
	for range 2 {
		r.await("Nova to find no host", func() (bool, any) {
			m, err := r.status()
			return m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED && m.GetReason() == "CapacityUnavailable" && m.GetProviderId() == "", []any{m, err}
		})
		_, err := r.settled()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "No valid host was found.") {
			t.Fatalf("asked again: %v", err)
		}
		if m, err := r.settled(); err != nil || m.GetProviderId() != "" {
			t.Fatalf("asked once more: %v, %v", m, err)
		}
	}
	pages, err := ports.List(r.in.Network, ports.ListOpts{Description: ownership.ClusterDescription(r.owner.Cluster)}).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found, err := ports.ExtractPorts(pages); err != nil || len(found) != 1 {
		t.Errorf("ports: %v, %v", found, err)
	}
	r.remove()
}
