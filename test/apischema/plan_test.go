package apischema

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestROL7_APlanSaysWhatAFileWouldDo compares what is printed before anything is applied.
func TestROL7_APlanSaysWhatAFileWouldDo(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ownedDeployment()
	u.do("", "annotate", "ma/nodes-2", clusterv1alpha1.MachinePriorityAnnotation+"=1") // it goes last
	kubelet := edit{"spec.template.spec.versions.kubelet", "1.36.4"}
	before := u.do("", "get", "md,ms,ma", "-o", "yaml")
	for golden, tc := range map[string]struct {
		manifest, args string
	}{
		"plan-nothing.golden": {deploymentManifest, "plan -f -"},
		"plan-in-place.golden": {edited(t, deploymentManifest,
			edit{"spec.template.spec.metadata", "{labels: {team: a}}"}, edit{"spec.template.spec.nodeDrainTimeout", "1h"},
			edit{"spec.strategy", "{rollingUpdate: {maxSurge: 2}}"}), "plan -f -"},
		"plan-replace.golden": {edited(t, deploymentManifest, kubelet, edit{"spec.replicas", "4"},
			edit{"spec.template.spec.providerSpec.value.cloudProviderSpec", "{password: not-to-be-shown}"}), "plan -f -"},
		"plan-down-wide.golden":   {edited(t, deploymentManifest, edit{"spec.replicas", "0"}), "plan -f - -o wide"},
		"plan-new.golden":         {edited(t, deploymentManifest, edit{"metadata.name", "others"}), "plan -f -"},
		"plan-json.golden":        {edited(t, deploymentManifest, kubelet), "plan -f - -o json"},
		"plan-server-side.golden": {edited(t, deploymentManifest, kubelet), "plan -f - --server-side --force-conflicts"},
		"plan-many.golden": {edited(t, deploymentManifest, edit{"metadata.name", "many"}, edit{"spec.replicas", "100"}) +
			"\n---\n" + setManifest, "plan -f -"},
		"plan-name.golden": {"", "plan md/nodes"},
	} {
		t.Run(golden, func(t *testing.T) {
			stdout, stderr, err := u.in(t).run(plugin, tc.manifest, append(strings.Fields(tc.args), "--namespace", u.namespace)...)
			if err != nil {
				t.Fatalf("kubectl millwright %s: %v: %s", tc.args, err, stderr)
			}
			compare(t, filepath.Join("testdata", "plugin", golden), strings.ReplaceAll(stdout+stderr, u.namespace, "team"))
		})
	}
	if diff := cmp.Diff(before, u.do("", "get", "md,ms,ma", "-o", "yaml")); diff != "" {
		t.Errorf("a plan has changed something: (-before +after)\n%s", diff)
	}
}

// TestROL7_APlanEndsAsCIWants looks at exit codes, and at what is told of mistakes.
func TestROL7_APlanEndsAsCIWants(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(deploymentManifest, "apply", "-f", "-")
	paused := edited(t, deploymentManifest, edit{"spec.paused", "true"})
	for _, tc := range []struct {
		name, manifest, args string
		code                 int
		want                 string
	}{
		{"machines would be created", deploymentManifest, "plan -f -", 0, "2 machines are created"},
		{"the same, and that counts", deploymentManifest, "plan -f - --detailed-exitcode", 2, "2 machines are created"},
		{"none would be", paused, "plan -f - --detailed-exitcode", 0, "The deployment is paused"},
		{"the API server refuses it", edited(t, deploymentManifest, edit{"spec.replicas", "-1"}), "plan -f - --detailed-exitcode", 1, "spec.replicas"},
		{"another namespace", edited(t, deploymentManifest, edit{"metadata.namespace", "elsewhere"}), "plan -f -", 1, "the namespace from the provided object"},
		{"nothing to plan", setManifest, "plan -f -", 1, "there is no MachineDeployment in it"},
		{"no file", "", "plan -f nowhere.yaml", 1, "nowhere.yaml"},
		{"neither name nor file", "", "plan", 1, "--filename"},
		{"both", deploymentManifest, "plan nodes -f -", 1, "--filename"},
		{"no such deployment", "", "plan nowhere", 1, "not found"},
		{"no such format", deploymentManifest, "plan -f - -o table", 1, "wide, json, yaml"},
	} {
		stdout, stderr, err := u.run(plugin, tc.manifest, append(strings.Fields(tc.args), "--namespace", u.namespace)...)
		code := 0
		if exit, is := errors.AsType[*exec.ExitError](err); is {
			code = exit.ExitCode()
		}
		if code != tc.code || !strings.Contains(stdout+stderr, tc.want) {
			t.Errorf("%s: exit code %d, want %d with %q: %s%s", tc.name, code, tc.code, tc.want, stdout, stderr)
		}
	}
}
