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

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/recorder"
	"github.com/millwright-dev/millwright/test/tier"
)

// standVariable says how long nothing must happen in tests that wait for nothing, such as 10m.
const standVariable = "MILLWRIGHT_STAND"

// standFor is how long that is; by far the periods of everything that recurs are shorter.
func standFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(standVariable)
	if text == "" {
		return 20 * time.Second
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", standVariable, err)
	}
	return long
}

// recordedUser works on a stack whose driver is recorded.
type recordedUser struct {
	*user
	recorder *recorder.Recorder
}

// newRecordedUser starts a stack of its own, whose manager repeats within seconds what else takes
// it minutes.
func newRecordedUser(t *testing.T, managerArgs ...string) *recordedUser {
	t.Helper()
	takeTurn(t)
	dir, err := os.MkdirTemp("", "mw-rec-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(otherKeyFile(dir), []byte(otherKey), 0o600); err != nil {
		t.Fatal(err)
	}
	u := &recordedUser{}
	options := stackOptions(dir)
	options.ManagerArgs = append([]string{
		"-v=4", "--settle-period=1s", "--orphan-interval=2s", "--settled-interval=2s", "--credential-retry=2s",
	}, managerArgs...)
	options.Detour = func(to, address string) (string, error) {
		if to != stack.Driver {
			return address, nil
		}
		at := filepath.Join(dir, "recorder.sock")
		started, err := recorder.Start(at, address)
		u.recorder = started
		return "unix://" + at, err
	}
	f, err := newFixture(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.recorder.Stop(); err != nil {
			t.Errorf("stop the recorder: %v", err)
		}
		code := 0
		if t.Failed() {
			code = 1
		}
		if f.end(code) != code {
			t.Error("the stack did not end well")
		}
	})
	u.user = newUserOf(t, f)
	return u
}

// notEntrusted fails the test for each request that came with secrets.
func (u *recordedUser) notEntrusted() {
	u.t.Helper()
	told := map[string]bool{}
	for _, r := range u.recorder.Entrusted() {
		if key := r.Method + r.Spec; !told[key] {
			told[key] = true
			u.t.Errorf("the driver was sent secrets with %s for %s", r.Method, r.Spec)
		}
	}
}

// The account of a Cluster, and what a tenant tries to have its credentials sent elsewhere.
const (
	temptation = `{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: blue}, spec: {credentialsSecretRef: {name: cloud}}}`
	ofBlue     = "\n      clusterRef: {name: blue}"
	elsewhere  = ", endpoint: https://cloud.example.evil"
)

// tempt applies, in as many ways as there are, specs that would have the Cluster's credentials sent
// to an address of the tenant's own.
func (u *recordedUser) tempt() {
	u.t.Helper()
	lure := map[string]string{"spec": ofBlue, "extra": elsewhere}
	u.apply(deployment("none", 0, lure))
	u.apply(deployment("one", 1, lure))
	u.apply(deployment("otherwise", 0, map[string]string{"spec": ofBlue, "extra": ", Endpoint: https://cloud.example.evil"}))
	u.apply(deployment("secret", 0, map[string]string{"extra": ", zone: {secretKeyRef: {name: cloud, key: key}}"}))
	set := strings.Replace(deployment("set", 0, lure), "kind: MachineDeployment", "kind: MachineSet", 1)
	u.apply(strings.Replace(set, "  strategy:\n    type: RollingUpdate\n    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}\n", "", 1))
	u.apply(lured("fresh", ""))
	u.apply(lured("born", "\n  providerID: fake:///somebody-elses"))
}

// lured is a Machine with an address of its own beside the Cluster's credentials.
func lured(name, extra string) string {
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: %s}
spec:
  versions: {kubelet: 1.34.3}
  clusterRef: {name: blue}%s
  providerSpec:
    value:
      cloudProvider: fake
      cloudProviderSpec: {flavor: small, image: ubuntu-24.04%s}
      operatingSystem: ubuntu
`, name, extra, elsewhere)
}

// A tenant has a Cluster's credentials sent to an address of his own. The rules refuse his specs,
// and no call to the driver comes with a secret: no create, look, list, scan for orphans, delete or
// question about a spec. Once the specs are mended, everything works.
func TestSAFE8_API4_NoSecretLeavesBeforeTheRulesHavePassed(t *testing.T) {
	tier.Long(t, "it takes stacks of its own")
	t.Parallel()
	for name, args := range map[string][]string{"by default": nil, "with a list": {"--allow-endpoint=" + allowedEndpoints}} {
		t.Run(name, func(t *testing.T) {
			u := newRecordedUser(t, args...)
			u.mayReadSecrets()
			u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key="+otherKey)
			u.apply(temptation)
			asked := []byte(deployment("asked", 1, map[string]string{"spec": ofBlue, "extra": elsewhere}))
			eventually(t, "the webhook to refuse it", func(context.Context) error {
				if out, err := u.try(asked, "apply", "--dry-run=server", "-f", "-"); err == nil {
					return fmt.Errorf("it passes: %s", out)
				}
				return nil
			})
			u.withoutWebhook()
			eventually(t, "the webhook to be off", func(context.Context) error {
				if out, err := u.try(asked, "apply", "--dry-run=server", "-f", "-"); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
			u.tempt()
			u.awaitRefused("fresh")
			u.standTempted()
			u.notEntrusted()
			u.mend()
		})
	}
}

// awaitRefused waits until a Machine says which of its fields the rules refuse.
func (u *recordedUser) awaitRefused(name string) {
	u.t.Helper()
	eventually(u.t, name+" to be refused", func(context.Context) error {
		for _, m := range u.machines() {
			if m.Name == name && !saysWhy(&m, clusterv1alpha1.ReasonSpecInvalid, "cloudProviderSpec.endpoint") {
				return fmt.Errorf("machine %s says%s", m.Name, words(m.Status.Conditions))
			}
		}
		return nil
	})
}

// standTempted keeps Machines coming and going, refused as they are, and checks that there is
// traffic.
func (u *recordedUser) standTempted() {
	u.t.Helper()
	before := u.recorder.Calls()
	for end := time.Now().Add(standFor(u.t)); time.Now().Before(end); {
		u.kubectl("delete", "machine", "fresh", "--timeout=60s")
		u.apply(lured("fresh", ""))
		u.awaitRefused("fresh")
	}
	after := u.recorder.Calls()
	u.t.Logf("calls: %v, before that %v", after, before)
	if after["Probe"] <= before["Probe"] {
		u.t.Errorf("the driver was not called at all: %v, before that %v", after, before)
	}
}

// mend has every spec go where the Cluster's credentials belong.
func (u *recordedUser) mend() {
	u.t.Helper()
	u.kubectl("delete", "machine", "fresh", "--timeout=60s")
	u.kubectl("delete", "machine", "born", "--wait=false")
	u.apply(deployment("one", 1, map[string]string{"spec": ofBlue}))
	eventually(u.t, "the mended deployment to run in the Cluster's account", func(context.Context) error {
		for _, m := range u.machines() {
			if m.Labels["pool"] == "one" && m.Status.Phase == clusterv1alpha1.MachinePhaseRunning && strings.Contains(string(m.Status.LastKnownState), otherAccount) {
				return nil
			}
		}
		return fmt.Errorf("there are %d machines, and none is", len(u.machines()))
	})
	entrusted := u.recorder.Entrusted()
	if !slices.ContainsFunc(entrusted, func(r recorder.Request) bool { return r.Method == "CreateMachine" && r.Secrets["key"] == otherKey }) {
		u.t.Error("the machine was made without the Cluster's credentials")
	}
	for _, r := range entrusted {
		if strings.Contains(r.Spec, "evil") {
			u.t.Errorf("%s for %s came with secrets", r.Method, r.Spec)
		}
	}
	if !slices.ContainsFunc(entrusted, func(r recorder.Request) bool { return r.Method == "ListMachines" }) {
		u.t.Log("no list has been asked for with the credentials yet")
	}
	// The Machine that was born with a providerID goes as soon as its Cluster gives it nothing to
	// lose.
	u.kubectl("patch", "cluster.cluster.k8s.io", "blue", "--type=merge", "--patch", `{"spec":{"credentialsSecretRef":null}}`)
	u.kubectl("wait", "machine/born", "--for=delete", "--timeout=90s")
	u.kubectl("patch", "cluster.cluster.k8s.io", "blue", "--type=merge", "--patch", `{"spec":{"credentialsSecretRef":{"name":"cloud"}}}`)
}
