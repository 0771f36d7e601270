package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
)

// otherAccount is an account of the cloud that nobody uses, otherKey the key to it. The driver sends an empty key, which opens
// the default account unless it is this one's.
const (
	otherAccount = "blue"
	otherKey     = "key-of-blue"
)

func otherKeyFile(dir string) string { return filepath.Join(dir, "other.key") }

// rekey restarts the cloud with another key for otherAccount, and the manager, which then looks at every VM at once.
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

// Credentials that open another account, in which every VM looks gone: nothing is replaced or deleted, one condition says why, and
// goes when they are mended.
func TestLIFE8_CredentialsOfAnotherAccount(t *testing.T) {
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
