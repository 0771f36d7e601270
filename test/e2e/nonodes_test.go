package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// tokenPlaceholder stands for a bootstrap token in user data of a user's own.
const tokenPlaceholder = "<<BOOTSTRAP_TOKEN>>"

// newNoNodesUser returns a user of a stack of its own, whose Machines have no Nodes.
func newNoNodesUser(t *testing.T) *user {
	t.Helper()
	takeTurn(t)
	dir, err := os.MkdirTemp("", "mw-non-")
	if err != nil {
		t.Fatal(err)
	}
	options := stackOptions(dir)
	options.CloudArgs, options.Layout = nil, stack.NoNodes
	options.ManagerArgs = []string{"-v=4", "--settle-period=1s", "--orphan-interval=" + scanInterval.String()}
	f, err := newFixture(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.endWith(t) })
	return newUserOf(t, f)
}

// Machines without Nodes, with user data of their user's own or none: they are Running when their
// VMs run, are rolled and replaced, and go without a drain. User data that wants a token is
// refused.
func TestLIFE13_MachinesWithoutNodes(t *testing.T) {
	tier.Long(t, "it takes a stack of its own")
	t.Parallel()
	const size, data = 2, "#cloud-config\nhostname: mine\n"
	u := newNoNodesUser(t)
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "boot", "--from-literal=value="+data)
	own := func(flavor string) string {
		return deployment("bare", size, map[string]string{"flavor": flavor, "spec": "\n      bootstrap: {dataSecretName: boot}"})
	}
	u.apply(own("small"))
	u.awaitRunning(size)
	for _, m := range u.machines() {
		if m.Status.NodeRef != nil || !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady) {
			t.Errorf("machine %s has the Node %v%s", m.Name, m.Status.NodeRef, words(m.Status.Conditions))
		}
		if got := string(u.vm(*m.Spec.ProviderID).GetUserData()); got != data {
			t.Errorf("machine %s has the user data %q, want %q", m.Name, got, data)
		}
	}
	u.apply(own("medium"))
	u.rolledOut("bare")
	u.awaitRunning(size)

	dies := u.machines()[0]
	u.change(*dies.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_DELETE)
	eventually(t, "the machine whose VM is gone to be replaced", func(context.Context) error {
		if m, found := u.find(dies.Name); found {
			return fmt.Errorf("it is there still%s", words(m.Status.Conditions))
		}
		return nil
	})
	u.awaitRunning(size)
	u.checkOneVMEach()
	u.kubectl("delete", "machinedeployment", "bare")
	u.awaitGone()

	u.apply(deployment("empty", 1, nil))
	u.awaitRunning(1)
	if got := u.vm(*u.machine().Spec.ProviderID).GetUserData(); len(got) > 0 {
		t.Errorf("a machine without user data has %q", got)
	}
	u.kubectl("delete", "machinedeployment", "empty")
	u.awaitGone()

	u.kubectl("create", "secret", "generic", "joins", "--from-literal=value="+tokenPlaceholder)
	u.apply(deployment("joins", 1, map[string]string{"spec": "\n      bootstrap: {dataSecretName: joins}"}))
	eventually(t, "the machine to say that there is no token for it", func(context.Context) error {
		for _, m := range u.machines() {
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionBootstrapReady)
			if c != nil && strings.Contains(c.Message, tokenPlaceholder) {
				return nil
			}
		}
		return errors.New("none does")
	})
	u.kubectl("delete", "machinedeployment", "joins")
	u.awaitGone()
	u.checkNothingIsForbidden()
}
