package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"google.golang.org/grpc/codes"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	services "github.com/millwright-dev/millwright/test/openstack/deployment"
	"github.com/millwright-dev/millwright/test/tier"
)

// onMetaKube renders a MachineDeployment with the spec of MetaKube's users of today. extra goes
// below its spec.template.spec.
func (u *openStackUser) onMetaKube(name string, replicas int, extra string) string {
	return u.ids.Replace(fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector:
    matchLabels: {group: %[1]s}
  template:
    metadata:
      labels: {group: %[1]s}
    spec:
      versions: {kubelet: 1.34.3}%[3]s
      providerSpec:
        value:
          cloudProvider: openstack
          cloudProviderSpec:
            availabilityZone: dbl1
            flavor: m1.small
            floatingIpPool: ext-net
            image: Ubuntu Noble 24.04 (2024-08-01)
            network: metakube-mmxfcmgjkx
            region: dbl
            securityGroups: [metakube-mmxfcmgjkx]
            serverGroupID: fe9dcd44-f08a-492a-9e64-4e38e1d51573
            subnet: 2969ae04-a429-4c1b-83e3-2f76fc3a342a
          operatingSystem: ubuntu
          operatingSystemSpec: {}
`, name, replicas, extra))
}

// The manifests of MetaKube's users become servers as they ask for them, field by field, in what
// OpenStack's own APIs show.
func TestDRV3_OpenStackServersAreAsAsked(t *testing.T) {
	t.Parallel()
	kubermatic := machineServer{
		Flavor: "m1.micro", Metadata: map[string]string{"kubermatic-cluster": "92r62cx8j6"},
		Ports: []machinePort{{
			Network: "kubermatic-92r62cx8j6", Subnet: kubermaticSubnet, SecurityGroups: []string{"kubermatic-92r62cx8j6"},
		}},
	}
	metakube := machineServer{
		Flavor: "m1.small", ServerGroups: []string{metakubeGroup},
		Ports: []machinePort{{
			Network: "metakube-mmxfcmgjkx", Subnet: metakubeSubnet, SecurityGroups: []string{"metakube-mmxfcmgjkx"},
		}},
	}
	for _, tc := range []struct {
		seed, image string
		replicas    int
		want        machineServer
	}{
		{"metakube-2018", "Ubuntu 18.04 LTS sys11 optimized - 2018-08-13", 1, kubermatic},
		{"metakube-2019", "Ubuntu Bionic 18.04 (2019-03-27)", 1, kubermatic},
		{"metakube-2024", "Ubuntu Noble 24.04 (2024-08-01)", 2, metakube},
	} {
		t.Run(tc.seed, func(t *testing.T) {
			u := newOpenStackUser(t)
			// They name the namespace kube-system.
			u.namespace = "kube-system"
			u.apply(u.manifestOf(tc.seed))
			u.awaitRunning(tc.replicas)
			tc.want.Image = tc.image
			for _, m := range u.machines() {
				got := u.server(*m.Spec.ProviderID)
				if diff := cmp.Diff(u.complete(tc.want, &m), got); diff != "" {
					t.Errorf("the server of machine %s is not as asked (-want +got):\n%s", m.Name, diff)
				}
				u.checkUserData(&m)
			}
			u.checkOneVMEach()
		})
	}
}

// complete returns what is wanted of the Machine's server: what its manifest asks for, and what is
// so for each. Addresses are OpenStack's to choose; the Machine has to know them.
func (u *openStackUser) complete(want machineServer, m *clusterv1alpha1.Machine) machineServer {
	u.t.Helper()
	cluster, uid := u.clusterUID(), *m.Spec.MachineUID
	want.Name, want.Status, want.Zone = m.Name, "ACTIVE", "dbl1"
	want.ServerGroups = slices.Clone(want.ServerGroups)
	for i, id := range want.ServerGroups {
		want.ServerGroups[i] = u.ids.Replace(id)
	}
	want.Tags = []string{"millwright-cluster=" + cluster, "millwright-machine=" + uid}
	metadata := map[string]string{
		"millwright-cluster": cluster, "millwright-machine": uid, "millwright-namespace": m.Namespace, "millwright-name": m.Name,
		// Nova takes no slash in a key.
		"cluster.k8s.io_machine": m.Namespace + "/" + m.Name,
	}
	maps.Copy(metadata, want.Metadata)
	want.Metadata = metadata
	want.Ports = slices.Clone(want.Ports)
	port := &want.Ports[0]
	port.Subnet = u.ids.Replace(port.Subnet)
	port.Name, port.Description, port.Status = m.Namespace+"/"+m.Name+"/"+uid, "millwright cluster "+cluster, "ACTIVE"
	port.FloatingIPFrom, port.FloatingIPDescription = "ext-net", "machine "+uid+" of millwright cluster "+cluster
	for _, a := range m.Status.Addresses {
		if a.Type == "InternalIP" || a.Type == "ExternalIP" {
			port.Addresses = append(port.Addresses, a.Address)
		}
	}
	if len(port.Addresses) != 2 {
		u.t.Errorf("machine %s says %v, want an internal and an external address", m.Name, m.Status.Addresses)
	}
	return want
}

// 20 machines come and go, and leave the project as it was: what others have in it is not touched,
// also not by the scan for orphans. With -short they are 5.
func TestDRV5_OpenStackIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	machines := 20
	if testing.Short() {
		machines = 5
	}
	u := newOpenStackUser(t)
	u.strangers()
	before := u.inventory(t.Context())
	u.apply(u.onMetaKube("tide", 0, ""))
	u.kubectl("scale", "machinedeployment", "tide", fmt.Sprintf("--replicas=%d", machines))
	u.awaitRunning(machines)
	u.checkOneVMEach()
	// A server, a port and a floating IP for each, and those that were there.
	if n := len(u.inventory(t.Context())); n != len(before)+3*machines {
		t.Errorf("there are %d things in the project, want %d", n, len(before)+3*machines)
	}
	u.kubectl("scale", "machinedeployment", "tide", "--replicas=0")
	u.awaitGone()
	if diff := cmp.Diff(before, u.inventory(t.Context())); diff != "" {
		t.Errorf("the project is not as it was (-before +after):\n%s", diff)
	}
}

// A server that somebody deletes in OpenStack is replaced, and takes its port and its floating IP
// along.
func TestLIFE8_OpenStackServerDeletedByHand(t *testing.T) {
	tier.Long(t, "the fake cloud's test shows the same")
	t.Parallel()
	const machines = 3
	u := newOpenStackUser(t)
	before := len(u.inventory(t.Context()))
	u.apply(u.onMetaKube("mortal", machines, ""))
	u.awaitRunning(machines)
	dies := u.machines()[0]
	u.deleteServer(strings.TrimPrefix(*dies.Spec.ProviderID, "openstack:///"))
	eventually(t, "the dead to be replaced", func(context.Context) error {
		if m, found := u.find(dies.Name); found {
			return fmt.Errorf("machine %s is there still%s", m.Name, words(m.Status.Conditions))
		}
		return nil
	})
	u.awaitRunning(machines)
	u.checkOneVMEach()
	if n := len(u.inventory(t.Context())); n != before+3*machines {
		t.Errorf("there are %d things in the project, want %d: %v", n, before+3*machines, u.inventory(t.Context()))
	}
}

// deleteServer deletes a server as a person would: with OpenStack's own client where real services
// are, and it with them.
func (u *openStackUser) deleteServer(id string) {
	u.t.Helper()
	if os.Getenv(services.Variable) == "" {
		if err := servers.Delete(u.t.Context(), u.compute, id).ExtractErr(); err != nil {
			u.t.Fatal(err)
		}
		return
	}
	command := exec.CommandContext(u.t.Context(), "openstack", "server", "delete", "--wait", id)
	command.Env = os.Environ()
	for key, value := range u.CloudEnvironment() {
		command.Env = append(command.Env, key+"="+value)
	}
	if out, err := command.CombinedOutput(); err != nil {
		u.t.Fatalf("openstack server delete: %v\n%s", err, out)
	}
}

// A new template is rolled out to servers within maxSurge: no more of them, and none less.
func TestROL1_OpenStackRollingUpdate(t *testing.T) {
	tier.Long(t, "the fake cloud's test shows the same")
	t.Parallel()
	const machines = 3
	u := newOpenStackUser(t)
	before := len(u.inventory(t.Context()))
	u.apply(u.onMetaKube("rolled", machines, ""))
	u.awaitRunning(machines)
	old, peak := u.uids(), u.keepExtremes()
	u.apply(strings.ReplaceAll(u.onMetaKube("rolled", machines, ""), "m1.small", "m1.medium"))
	u.rolledOut("rolled")
	u.awaitRunning(machines)
	if most, least := peak(); most > machines+1 || least < machines {
		t.Errorf("between %d and %d machines, want %d, and one more", least, most, machines)
	}
	for _, m := range u.machines() {
		if flavor := u.server(*m.Spec.ProviderID).Flavor; flavor != "m1.medium" || slices.Contains(old, *m.Spec.MachineUID) {
			t.Errorf("machine %s was not replaced: its flavor is %s", m.Name, flavor)
		}
	}
	u.checkOneVMEach()
	if n := len(u.inventory(t.Context())); n != before+3*machines {
		t.Errorf("there are %d things in the project, want %d", n, before+3*machines)
	}
}

// Nova's quota: the Machine that does not fit says so in Nova's words, and goes on by itself when
// it is raised.
func TestSAFE7_OpenStackQuota(t *testing.T) {
	tier.Long(t, "the fake cloud's test shows the same")
	t.Parallel()
	const novasWords = "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances"
	u := newOpenStackUser(t)
	u.quota(2)
	u.apply(u.onMetaKube("limited", 2, ""))
	// Of three that are asked for at the same instant Nova may take all, and give one of them up.
	u.awaitRunning(2)
	u.kubectl("scale", "machinedeployment", "limited", "--replicas=3")
	eventually(t, "one machine to say that the quota is used up", func(context.Context) error {
		said, running := 0, 0
		for _, m := range u.machines() {
			if saysWhy(&m, clusterv1alpha1.ReasonQuotaExceeded, novasWords) {
				said++
			}
			if m.Status.Phase == clusterv1alpha1.MachinePhaseRunning {
				running++
			}
		}
		if said != 1 || running != 2 {
			return fmt.Errorf("%d machines say so and %d are Running", said, running)
		}
		return nil
	})
	before := u.uids()
	u.quota(-1)
	u.awaitRunning(3)
	if after := u.uids(); !slices.Equal(before, after) {
		t.Errorf("machines were replaced: uids %v became %v", before, after)
	}
	u.checkOneVMEach()
}

// The credentials in a Secret change while machines run. Wrong ones: each Machine says so, nothing
// is replaced, and Keystone is not hammered. Those of another project, where every server looks
// gone: AccountChanged, and nothing is replaced or deleted. The right ones again: it goes on.
func TestDRV4_OpenStackCredentialsChange(t *testing.T) {
	tier.Long(t, "it starts the manager anew again and again")
	t.Parallel()
	const machines = 2
	u := newOpenStackUser(t)
	u.mayReadSecrets()
	u.credentials(nil)
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: blue}, spec: {credentialsSecretRef: {name: cloud}}}`)
	u.apply(u.onMetaKube("entrusted", machines, "\n      clusterRef: {name: blue}"))
	// At the end machines are deleted with what the Secret holds then.
	t.Cleanup(func() { u.credentials(nil) })
	u.awaitRunning(machines)
	before := u.snapshot()

	wrong := time.Now()
	u.credentials(map[string]string{"OS_PASSWORD": "not-the-password"})
	u.lookAnew()
	u.awaitInstance(clusterv1alpha1.ReasonCredentialsInvalid)
	u.checkNothingHappens(5*time.Second, before)
	u.kubectl("scale", "machinedeployment", "entrusted", fmt.Sprintf("--replicas=%d", machines+1))
	eventually(t, "the new machine to say so, too", func(context.Context) error {
		if !slices.ContainsFunc(u.machines(), func(m clusterv1alpha1.Machine) bool {
			return saysWhy(&m, clusterv1alpha1.ReasonCredentialsInvalid, "requires authentication")
		}) {
			return fmt.Errorf("none of %d machines does", len(u.machines()))
		}
		return nil
	})
	u.checkLogins(wrong)

	u.credentials(nil)
	u.awaitRunning(machines + 1)
	u.awaitInstance(clusterv1alpha1.ReasonInstanceRunning)
	u.checkKept(before.uids)

	before = u.snapshot()
	u.credentials(map[string]string{"OS_USERNAME": "alt", "OS_PROJECT_NAME": "alt"})
	u.lookAnew()
	u.awaitInstance(clusterv1alpha1.ReasonAccountChanged)
	u.checkNothingHappens(5*time.Second, before)
	u.credentials(nil)
	u.lookAnew()
	u.awaitInstance(clusterv1alpha1.ReasonInstanceRunning)
	u.checkNothingHappens(time.Second, before)
	u.checkOneVMEach()
}

// A hundred machines are wanted at once. OpenStack is asked no more for each than the budget of
// DRV4, until they run, while nothing happens, and until they are gone. Lookups and logins count.
// The list that all machines share comes by the clock, and is not counted. With -short it is 20
// machines.
func TestDRV4_OpenStackCallsPerMachine(t *testing.T) {
	t.Parallel()
	const budgetUp, budgetDown = 4, 3
	machines, idle := 100, 20*time.Second
	if testing.Short() {
		machines, idle = 20, 7*time.Second // two lists
	}
	u := newOpenStackUser(t)
	begun := u.asked()
	u.apply(strings.ReplaceAll(u.onMetaKube("crowd", machines, ""), "            floatingIpPool: ext-net\n", ""))
	u.awaitRunning(machines)
	running := u.asked()
	resting, cancel := context.WithTimeout(t.Context(), idle)
	defer cancel()
	<-resting.Done()
	rested := u.asked()
	u.kubectl("scale", "machinedeployment", "crowd", "--replicas=0")
	u.awaitGone()
	gone := u.asked()

	waited := rested.since(running)
	t.Logf("idle: %v in %s", waited, rested.at.Sub(running.at).Round(time.Second))
	for operation := range waited {
		if !strings.HasPrefix(operation, "List") {
			t.Errorf("while nothing happens OpenStack is asked for %s: %v", operation, waited)
		}
	}
	for _, phase := range []struct {
		name     string
		from, to asked
		budget   float64
	}{{"until they run", begun, running, budgetUp}, {"until they are gone", rested, gone, budgetDown}} {
		calls := phase.to.since(phase.from)
		own := float64(calls.all()-callsPerList*(phase.to.lists-phase.from.lists)) / float64(machines)
		t.Logf("%s, in %s: %.2f calls each, %.2f of them beyond the shared list: %v",
			phase.name, phase.to.at.Sub(phase.from.at).Round(time.Second), float64(calls.all())/float64(machines), own, calls)
		if own > phase.budget {
			t.Errorf("%s: more calls for each of %d machines than %.0f", phase.name, machines, phase.budget)
		}
	}
}

// callsPerList is what a list of up to a thousand machines costs: servers, ports, floating IPs and
// volumes.
const callsPerList = 4

// asked counts the calls of the cloud's own API, by operation, until an instant.
type asked struct {
	at    time.Time
	calls tally
	// lists are those of all machines, which cost callsPerList each.
	lists int64
}

// tally counts by operation.
type tally map[string]int64

func (u *openStackUser) asked() asked {
	u.t.Helper()
	totals, err := u.Backend().GetTotals(u.t.Context(), &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		u.t.Fatalf("count the cloud's calls: %v", err)
	}
	lists := int64(u.driverCalls("openstack")[driverCall{"ListMachines", "OK"}])
	return asked{time.Now(), totals.GetCalls(), lists}
}

// since is what was counted after an earlier count.
func (a asked) since(before asked) tally {
	more := tally{}
	for operation, n := range a.calls {
		if n > before.calls[operation] {
			more[operation] = n - before.calls[operation]
		}
	}
	return more
}

func (t tally) all() (n int64) {
	for _, of := range t {
		n += of
	}
	return n
}

// lookAnew has every Machine looked at with what its Secret holds now. A manager that has just been
// started does so at once; one that runs reads the Secrets of Machines that are well again within
// minutes.
func (u *openStackUser) lookAnew() {
	u.t.Helper()
	u.kill([]string{stack.Manager})
	u.revive([]string{stack.Manager})
}

// snapshot is what must not change.
type snapshot struct {
	uids   []string
	things map[string]string
}

func (u *openStackUser) snapshot() snapshot {
	u.t.Helper()
	return snapshot{u.uids(), u.inventory(u.t.Context())}
}

// checkNothingHappens watches for a while: the Machines stay as they are, and so does what the
// project holds.
func (u *openStackUser) checkNothingHappens(long time.Duration, before snapshot) {
	u.t.Helper()
	u.watchFor(long, func(m *clusterv1alpha1.Machine) {
		if m.Status.Phase != clusterv1alpha1.MachinePhaseRunning || !m.DeletionTimestamp.IsZero() {
			u.t.Errorf("machine %s is %s%s", m.Name, m.Status.Phase, words(m.Status.Conditions))
		}
	})
	if diff := cmp.Diff(before, u.snapshot(), cmp.AllowUnexported(snapshot{})); diff != "" {
		u.t.Errorf("something has happened (-before +after):\n%s", diff)
	}
}

// checkLogins fails the test unless Keystone has refused a login since then, but no more than one
// in each minute.
func (u *openStackUser) checkLogins(since time.Time) {
	u.t.Helper()
	calls, err := u.calls(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	refused := slices.DeleteFunc(calls, func(c *backendv1alpha1.Call) bool {
		return c.GetOperation() != "Authenticate" || c.GetCode() != int32(codes.Unauthenticated) || c.GetReceiveTime().AsTime().Before(since)
	})
	minutes := int(time.Since(since)/time.Minute) + 1
	if n := len(refused); n == 0 || n > minutes {
		u.t.Errorf("Keystone has refused %d logins in %s, want 1 in each minute at most", n, time.Since(since).Round(time.Second))
	}
}
