package apischema

import (
	"strings"
	"testing"
)

// change is a merge patch; refused is the field that the error must name, or
// empty if the change must be accepted.
type change struct{ name, patch, refused string }

// TestMachineChanges applies one change after the other to a Machine: what would
// need another VM is refused, all else goes.
func TestMachineChanges(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(machineManifest, "apply", "-f", "-")
	u.changes("ma/node-1", []change{
		{"cloudProvider", `{"spec":{"providerSpec":{"value":{"cloudProvider":"other"}}}}`, "spec.providerSpec"},
		{"a value in cloudProviderSpec", `{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"size":"large"}}}}}`, "spec.providerSpec"},
		{"a field more in cloudProviderSpec", `{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"color":"red"}}}}}`, "spec.providerSpec"},
		{"a field less in cloudProviderSpec", `{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"size":null}}}}}`, "spec.providerSpec"},
		{"a setting of the operating system", `{"spec":{"providerSpec":{"value":{"operatingSystemSpec":{"distUpgradeOnBoot":true}}}}}`, "spec.providerSpec"},
		{"a class", `{"spec":{"providerSpec":{"valueFrom":{"machineClass":{"name":"large"}}}}}`, "spec.providerSpec"},
		{"a Cluster", `{"spec":{"clusterRef":{"name":"blue"}}}`, "spec.clusterRef"},
		{"user data of its own", `{"spec":{"bootstrap":{"dataSecretName":"own"}}}`, "spec.bootstrap"},
		{"kubelet", `{"spec":{"versions":{"kubelet":"1.36.4"}}}`, "spec.versions"},
		{"labels of the Node", `{"spec":{"metadata":{"labels":{"team":"a"}}}}`, ""},
		{"taints", `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`, ""},
		{"drain timeout", `{"spec":{"nodeDrainTimeout":"5m"}}`, ""},
		{"volume detach timeout", `{"spec":{"nodeVolumeDetachTimeout":"5m"}}`, ""},
		{"startup timeout", `{"spec":{"nodeStartupTimeout":"5m"}}`, ""},
		{"machineUID for the first time", `{"spec":{"machineUID":"a"}}`, ""},
		{"machineUID again", `{"spec":{"machineUID":"b"}}`, "spec.machineUID"},
		{"machineUID gone", `{"spec":{"machineUID":null}}`, "spec.machineUID"},
		{"providerID for the first time", `{"spec":{"providerID":"fake:///1"}}`, ""},
		{"providerID again", `{"spec":{"providerID":"fake:///2"}}`, "spec.providerID"},
		{"providerID gone", `{"spec":{"providerID":null}}`, "spec.providerID"},
	})
}

// TestProviderIDTakesTheFormsThatAreItsOwn changes a providerID to what core has written down as
// another form of it, and to nothing else.
func TestProviderIDTakesTheFormsThatAreItsOwn(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(machineManifest, "apply", "-f", "-")
	u.do("", "patch", "ma/node-1", "--type=merge", "--patch", `{"spec":{"providerID":"fake:///1"}}`)
	u.do("", "patch", "ma/node-1", "--subresource=status", "--type=merge", "--patch", `{"status":{"providerID":"fake:///1","providerIDAliases":["fake://a/1"]}}`)
	u.changes("ma/node-1", []change{
		{"another VM's", `{"spec":{"providerID":"fake:///2"}}`, "spec.providerID"},
		{"the Node's form", `{"spec":{"providerID":"fake://a/1"}}`, ""},
		{"another VM's again", `{"spec":{"providerID":"fake://a/2"}}`, "spec.providerID"},
		{"the driver's form", `{"spec":{"providerID":"fake:///1"}}`, ""},
		{"none", `{"spec":{"providerID":null}}`, "spec.providerID"},
	})
}

// TestRenamedFieldSlipsThrough records what the API server cannot see: it compares free-form
// objects by the keys they share and by their number of keys, so that a renamed key passes for no
// change. The webhook refuses it. Should this test fail one day, the API server has learned it: add
// the case to TestMachineChanges.
func TestRenamedFieldSlipsThrough(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(machineManifest, "apply", "-f", "-")
	u.changes("ma/node-1", []change{
		{"renamed", `{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"zone":null,"region":"a"}}}}}`, ""},
	})
}

// TestSelectorChanges wants selectors to stay as they are.
func TestSelectorChanges(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for kind, manifest := range map[string]string{"md": deploymentManifest, "ms": setManifest} {
		u.do(manifest, "apply", "-f", "-")
		u.changes(kind+"/nodes", []change{
			{kind + " more labels in the template", `{"spec":{"template":{"metadata":{"labels":{"tier":"gpu"}}}}}`, ""},
			{kind + " another label in the selector", `{"spec":{"selector":{"matchLabels":{"tier":"gpu"}}}}`, "spec.selector"},
			{kind + " another value", `{"spec":{"selector":{"matchLabels":{"group":"b"}},"template":{"metadata":{"labels":{"group":"b"}}}}}`, "spec.selector"},
			{kind + " template no longer matches", `{"spec":{"template":{"metadata":{"labels":{"group":"b"}}}}}`, "spec.template.metadata.labels"},
			{kind + " another kubelet", `{"spec":{"template":{"spec":{"versions":{"kubelet":"1.36.4"}}}}}`, ""},
		})
	}
}

func (u *user) changes(object string, changes []change) {
	u.t.Helper()
	for _, c := range changes {
		u.t.Run(c.name, func(t *testing.T) {
			_, stderr, err := u.in(t).try("", "patch", object, "--type=merge", "--patch", c.patch)
			if c.refused == "" {
				if err != nil {
					t.Errorf("refused: %s", stderr)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(stderr, c.refused+": ") {
				t.Errorf("the error does not name %s:\n%s", c.refused, stderr)
			}
		})
	}
}
