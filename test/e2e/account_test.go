package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// otherAccount is an account of the cloud that nobody uses, otherKey the key to it. The driver
// sends an empty key, which opens the default account unless it is this one's.
const (
	otherAccount = "blue"
	otherKey     = "key-of-blue"
)

func otherKeyFile(dir string) string { return filepath.Join(dir, "other.key") }

// rekey restarts the cloud with another key for otherAccount, and the manager, which then looks at
// every VM at once.
func (u *user) rekey(key string) {
	u.t.Helper()
	victims := []string{stack.Cloud, stack.Manager}
	u.kill(victims)
	if err := os.WriteFile(otherKeyFile(u.dir), []byte(key), 0o600); err != nil {
		u.t.Fatal(err)
	}
	u.revive(victims)
}

// awaitInstance waits until each Machine's condition InstanceReady is True for this reason.
func (u *user) awaitInstance(reason string) {
	u.t.Helper()
	eventually(u.t, "InstanceReady True "+reason, func(context.Context) error {
		for _, m := range u.machines() {
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
				return fmt.Errorf("machine %s says%s", m.Name, words(m.Status.Conditions))
			}
		}
		return nil
	})
}

// A Secret holds the key of an account: machines are made and deleted there, whether their own spec
// names the Secret or their Cluster does, and nobody else gets to see it.
func TestAPI4_API6_MachinesInTheAccountOfASecret(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key="+otherKey)
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: blue}, spec: {credentialsSecretRef: {name: cloud}}}`)
	u.apply(deployment("named", 2, map[string]string{"extra": ", key: {secretKeyRef: {name: cloud, key: key}}"}))
	u.apply(deployment("inherited", 2, map[string]string{"spec": "\n      clusterRef: {name: blue}"}))
	u.awaitRunning(4)
	for _, m := range u.machines() {
		// What the driver wants to be told again, which for this one is where it made the VM.
		if state := string(m.Status.LastKnownState); !strings.Contains(state, otherAccount) {
			t.Errorf("the VM of machine %s was made in %s, want %s", m.Name, state, otherAccount)
		}
	}
	if out := u.kubectl("get", "machines,machinesets,machinedeployments,events", "-o", "yaml"); strings.Contains(out, otherKey) {
		t.Errorf("the secret is shown:\n%s", out)
	}
	u.kubectl("scale", "machinedeployment", "named", "inherited", "--replicas=1")
	u.awaitRunning(2)
	u.checkOneVMEach()
}

// Credentials that open another account, in which every VM looks gone: nothing is replaced or
// deleted, one condition says why, and goes when they are mended.
func TestLIFE8_CredentialsOfAnotherAccount(t *testing.T) {
	tier.Long(t, "it starts cloud and manager anew, twice")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("moved", 2, map[string]string{"spec": "\n      nodeStartupTimeout: 5s"}))
	u.awaitRunning(2)
	before := u.uids()
	mended := false
	t.Cleanup(func() {
		if !mended {
			u.rekey(otherKey)
		}
	})
	u.rekey("")
	u.awaitInstance(clusterv1alpha1.ReasonAccountChanged)
	u.watchFor(3*time.Second, func(m *clusterv1alpha1.Machine) {
		if m.Status.Phase != clusterv1alpha1.MachinePhaseRunning || !m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s is %s%s", m.Name, m.Status.Phase, words(m.Status.Conditions))
		}
	})
	u.rekey(otherKey)
	mended = true
	u.awaitInstance(clusterv1alpha1.ReasonInstanceRunning)
	if after := u.uids(); !slices.Equal(before, after) {
		t.Errorf("machines were replaced: uids %v became %v", before, after)
	}
	u.checkOneVMEach()
}
