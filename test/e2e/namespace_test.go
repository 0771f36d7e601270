package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// namespaceRounds is how often a namespace is deleted; with -short it is once.
var namespaceRounds = flag.Int("namespace-rounds", 3, "how many namespaces are deleted while the leader is killed")

// copiesNamespace holds the copies of credentials.
const copiesNamespace = "millwright-credentials"

// copies are the copies of Secrets of a namespace.
func (u *user) copies(ctx context.Context, namespace string) ([]corev1.Secret, error) {
	var all corev1.SecretList
	if err := u.client.List(ctx, &all, client.InNamespace(copiesNamespace)); err != nil {
		return nil, err
	}
	var found []corev1.Secret
	for _, s := range all.Items {
		if s.Annotations["cluster.k8s.io/copied-namespace"] == namespace {
			found = append(found, s)
		}
	}
	return found, nil
}

// awaitCopies waits until there are n copies of Secrets of a namespace.
func (u *user) awaitCopies(namespace string, n int) []corev1.Secret {
	u.t.Helper()
	var found []corev1.Secret
	eventually(u.t, fmt.Sprintf("%d copies of Secrets of namespace %s", n, namespace), func(ctx context.Context) (err error) {
		if found, err = u.copies(ctx, namespace); err == nil && len(found) != n {
			err = fmt.Errorf("there are %d", len(found))
		}
		return err
	})
	return found
}

// team applies all that a team has in its namespace: machines of a class and of a Cluster, and some
// that name their Secret themselves.
func (u *user) team(replicas int) {
	u.t.Helper()
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key="+otherKey)
	u.kubectl("create", "secret", "generic", "own", "--from-literal=key="+otherKey)
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: blue}, spec: {credentialsSecretRef: {name: cloud}}}`)
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineClass, metadata: {name: small}, provider: fake,
  providerSpec: {flavor: small, image: ubuntu-24.04}}`)
	u.apply(classed("alone", "small", "blue", ""))
	u.apply(deployment("named", replicas, map[string]string{"extra": ", key: {secretKeyRef: {name: own, key: key}}"}))
	u.apply(deployment("inherited", replicas, map[string]string{"spec": "\n      clusterRef: {name: blue}"}))
	u.awaitRunning(1 + 2*replicas)
}

// A namespace is deleted with Machines, Secrets, RoleBinding, MachineClass and Cluster in it: it
// goes, and no VM is left, also when the leader is killed at any moment of that.
func TestOPS11_TheCredentialsOfANamespaceOutliveIt(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.delayCalls(50*time.Millisecond, 500*time.Millisecond)
	home, seed := u.namespace, uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := *namespaceRounds
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		began := time.Now()
		u.namespace = fmt.Sprintf("%s-%d", home, round)
		u.kubectl("create", "namespace", u.namespace)
		u.team(2)
		u.awaitCopies(u.namespace, 2)
		moment := time.Duration(random.Int64N(int64(3 * time.Second)))
		u.kubectl("delete", "namespace", u.namespace, "--wait=false")
		<-time.After(moment)
		u.kill([]string{stack.Manager})
		u.revive([]string{stack.Manager})
		u.kubectl("wait", "--for=delete", "namespace/"+u.namespace, "--timeout="+waitLimit.String())
		if left := u.resources(t.Context()); len(left) > 0 {
			t.Fatalf("round %d, leader killed after %s: left in the cloud: %v", round, moment, left)
		}
		t.Logf("round %d: leader killed after %s, gone after %s", round, moment, time.Since(began).Round(time.Second))
	}
	deleted := u.namespace
	u.namespace = home
	u.awaitCopies(deleted, 0)
}

// The copy is there before the first VM is asked for. The leader is killed during that create, and
// the Secret is gone when the next one comes: nothing is created with the copy, and the VM is
// deleted.
func TestOPS11_ACopyIsThereBeforeTheFirstVM(t *testing.T) {
	tier.Long(t, "it kills the manager")
	t.Parallel()
	u := newUser(t)
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "own", "--from-literal=key="+otherKey)
	info, err := u.Backend().GetBackendInfo(t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		t.Fatalf("ask the cloud for its operations: %v", err)
	}
	point := backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT
	hold := u.hold(info.GetCreateOperations()[0], point)
	u.apply(deployment("first", 1, map[string]string{"extra": ", key: {secretKeyRef: {name: own, key: key}}"}))
	u.awaitCall(hold, backendv1alpha1.CallProgress_CALL_PROGRESS_RECEIVED)
	if found, err := u.copies(t.Context(), u.namespace); err != nil || len(found) != 1 {
		t.Errorf("when the first VM was asked for there were %d copies, %v", len(found), err)
	}
	u.kubectl("delete", "secret", "own")
	u.killAt(hold, point, []string{stack.Manager})
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonReferenceUnresolved, "own is not there")
	u.kubectl("delete", "machinedeployment", "first")
	u.awaitGone()
	if left := u.resources(t.Context()); len(left) > 0 {
		t.Errorf("left in the cloud: %v", left)
	}
	u.awaitCopies(u.namespace, 0)
}

// A copy follows its Secret, serves Machines that may have a VM and no other, and goes with the
// last of them. Nobody can refer to it.
func TestOPS11_ACopyOfCredentialsIsForDeletesOnly(t *testing.T) {
	tier.Long(t, "it kills the manager")
	t.Parallel()
	u := newUser(t)
	u.team(1)
	before := u.awaitCopies(u.namespace, 2)
	for _, s := range before {
		if string(s.Data["key"]) != otherKey || s.Type != "cluster.k8s.io/millwright-copy" {
			t.Errorf("the copy of %s is %s, and has %d keys", s.Annotations["cluster.k8s.io/copied-name"], s.Type, len(s.Data))
		}
	}
	u.kubectl("patch", "secret", "own", "--type=merge", "--patch", `{"stringData":{"more":"rotated"}}`)
	eventually(t, "the copy to follow", func(ctx context.Context) error {
		now, err := u.copies(ctx, u.namespace)
		for _, s := range now {
			if string(s.Data["more"]) == "rotated" {
				return nil
			}
		}
		return fmt.Errorf("%w: it does not", err)
	})

	u.kubectl("delete", "secret", "own", "cloud")
	// The manager remembers for seconds what it has read.
	u.kill([]string{stack.Manager})
	u.revive([]string{stack.Manager})
	u.awaitInstance(clusterv1alpha1.ReasonReferenceUnresolved)
	u.kubectl("scale", "machinedeployment", "named", "--replicas=2")
	eventually(t, "the new Machine to have no use of the copy", func(context.Context) error {
		for _, m := range u.machines() {
			if saysWhy(&m, clusterv1alpha1.ReasonReferenceUnresolved, "Secret "+u.namespace+"/own is not there") && m.Spec.ProviderID == nil {
				return nil
			}
		}
		return fmt.Errorf("none says so")
	})
	thief := `{apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: thief}, spec: {versions: {kubelet: 1.34.3}, providerSpec: {value: {
  cloudProvider: fake, operatingSystem: ubuntu,
  cloudProviderSpec: {flavor: small, image: ubuntu-24.04, key: {secretKeyRef: {namespace: ` + copiesNamespace + `, name: ` + before[0].Name + `, key: key}}}}}}}`
	if out, err := u.try([]byte(thief), "apply", "-f", "-"); err == nil || !strings.Contains(out, "--secret-namespaces") {
		t.Errorf("a reference to a copy: %v\n%s", err, out)
	}
	u.kubectl("delete", "machine", "alone")
	u.kubectl("delete", "machinedeployment", "named", "inherited")
	u.awaitGone()
	if left := u.resources(t.Context()); len(left) > 0 {
		t.Errorf("left in the cloud: %v", left)
	}
	u.awaitCopies(u.namespace, 0)
}

// The shipped examples are applied as they are, but for where the cloud is and what is in it, and
// deleted by file: namespace, Secret and RoleBinding go with the Machines, and no server, port or
// floating IP is left.
func TestOPS11_TheShippedExampleIsDeleted(t *testing.T) {
	tier.Long(t, "OpenStack's other tests show the same of servers")
	t.Parallel()
	u := newOpenStackUser(t)
	before := len(u.inventory(t.Context()))
	id, secret := u.applicationCredential()
	place := strings.NewReplacer(
		"https://keystone.example.com:5000/v3", u.CloudEnvironment()["OS_AUTH_URL"],
		"region: RegionOne", "region: "+u.CloudEnvironment()["OS_REGION_NAME"],
		"0123456789abcdef0123456789abcdef", id, "replace-me", secret,
		"Ubuntu Noble 24.04", "Ubuntu Noble 24.04 (2024-08-01)",
		"network: workers", "network: metakube-mmxfcmgjkx", "subnet: workers-ipv4", "subnet: metakube-mmxfcmgjkx",
		"- workers", "- metakube-mmxfcmgjkx",
		"            rootDiskSizeGB: 50\n            rootDiskVolumeType: ssd\n", "",
	)
	var files []string
	for _, name := range []string{"machinedeployment", "cluster"} {
		text, err := os.ReadFile(filepath.Join(deployDir, "openstack/examples", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(file, []byte(place.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, "--filename="+file)
	}
	reader := *u.user
	reader.namespace = "machines"
	everywhere := func(args ...string) { t.Helper(); reader.kubectl(append(args, files...)...) }
	everywhere("apply")
	reader.awaitRunning(4)
	everywhere("delete", "--timeout="+waitLimit.String())
	if now := u.inventory(t.Context()); len(now) != before {
		t.Errorf("%d things are left in the project: %v", len(now)-before, now)
	}
	u.awaitCopies("machines", 0)
}

// applicationCredential makes one of the user's.
func (u *openStackUser) applicationCredential() (id, secret string) {
	u.t.Helper()
	identity, err := openstack.NewIdentityV3(u.compute.ProviderClient, gophercloud.EndpointOpts{})
	if err != nil {
		u.t.Fatal(err)
	}
	login, is := u.compute.ProviderClient.GetAuthResult().(tokens.CreateResult)
	if !is {
		u.t.Fatal("there is no login")
	}
	user, err := login.ExtractUser()
	if err != nil {
		u.t.Fatal(err)
	}
	made, err := applicationcredentials.Create(u.t.Context(), identity, user.ID, applicationcredentials.CreateOpts{Name: u.own}).Extract()
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		if err := applicationcredentials.Delete(context.WithoutCancel(u.t.Context()), identity, user.ID, made.ID).ExtractErr(); err != nil {
			u.t.Error(err)
		}
	})
	return made.ID, made.Secret
}
