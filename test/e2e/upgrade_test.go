package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// Each part is upgraded and rolled back in turn while 50 machines run. After each step a label of
// the template still reaches each Machine and Node, so everything was looked at again, and nothing
// is replaced.
func TestAPI9_AnUpgradeReplacesNothing(t *testing.T) {
	tier.Long(t, "it starts each part anew, with 50 machines up")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("kept", 50, nil))
	u.awaitRunning(50)
	before := u.uids()
	args := u.Process(stack.Driver).Args()
	t.Cleanup(func() { u.restart(stack.Driver, args) })
	steps := []struct {
		name          string
		upgrade, back func()
	}{
		{"crd", u.newField, func() { u.withoutNewField(); u.awaitField("") }},
		{"core", func() { u.restart(stack.Manager, u.Process(stack.Manager).Args()) }, func() {}},
		{"driver", func() { u.restart(stack.Driver, append(slices.Clone(args), "--default-zone=fake-1b")) }, func() { u.restart(stack.Driver, args) }},
		{"webhook", u.withoutWebhook, u.withWebhook},
	}
	check := func(step string) {
		u.kubectl("patch", "machinedeployment", "kept", "--type=merge", "-p",
			`{"spec":{"template":{"metadata":{"labels":{"example.com/after":"`+step+`"}}}}}`)
		u.eachNode("the label to arrive after the step "+step, func(_ *clusterv1alpha1.Machine, node *corev1.Node) error {
			if got := node.Labels["example.com/after"]; got != step {
				return fmt.Errorf("the label is %q", got)
			}
			return nil
		})
		if after := u.uids(); !slices.Equal(after, before) {
			t.Errorf("after the step %s the uids %v are %v", step, before, after)
		}
		if sets := strings.Fields(u.kubectl("get", "machinesets", "--output=name")); len(sets) != 1 {
			t.Errorf("after the step %s there are the sets %v", step, sets)
		}
	}
	for _, s := range steps {
		s.upgrade()
		check(s.name)
	}
	for _, s := range slices.Backward(steps) {
		s.back()
		check(s.name + "-back")
	}
	u.checkOneVMEach()
}

// restart ends a process and starts it with other arguments.
func (u *user) restart(name string, args []string) {
	u.t.Helper()
	u.Process(name).SetArgs(args)
	u.kill([]string{name})
	u.revive([]string{name})
}

// specs are where the CRDs have what a machine is made from.
var specs = map[string]string{
	"machinedeployments": "/properties/spec/properties/template/properties/spec/properties",
	"machinesets":        "/properties/spec/properties/template/properties/spec/properties",
	"machines":           "/properties/spec/properties",
}

// newField has the CRDs know a field with a default that is in every spec from now on.
func (u *user) newField() {
	u.t.Helper()
	u.t.Cleanup(u.withoutNewField)
	for kind, path := range specs {
		u.kubectl("patch", "crd", kind+".cluster.k8s.io", "--type=json",
			`--patch=[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema`+path+`/tier","value":{"type":"string","default":"standard"}}]`)
	}
	u.awaitField("standard")
}

func (u *user) withoutNewField() {
	u.t.Helper()
	for kind, path := range specs {
		crd, field := kind+".cluster.k8s.io", "/spec/versions/0/schema/openAPIV3Schema"+path+"/tier"
		at := strings.ReplaceAll(strings.Replace(field, "/0/", "[0]/", 1), "/", ".")
		if u.kubectl("get", "crd", crd, "--output=jsonpath={"+at+"}") != "" {
			u.kubectl("patch", "crd", crd, "--type=json", `--patch=[{"op":"remove","path":"`+field+`"}]`)
		}
	}
}

// awaitField waits until the API server answers with that value of the new field, or without it.
func (u *user) awaitField(want string) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("the new field to be %q", want), func(context.Context) error {
		out, err := u.try(nil, "get", "machinedeployments,machinesets,machines",
			"--output=jsonpath={range .items[*]}{.spec.template.spec.tier}{.spec.tier},{end}")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if got := slices.Compact(strings.Split(strings.TrimSuffix(out, ","), ",")); len(got) != 1 || got[0] != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}
