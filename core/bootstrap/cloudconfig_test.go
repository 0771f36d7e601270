package bootstrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func worker(change ...func(*clusterv1alpha1.Machine)) *clusterv1alpha1.Machine {
	m := &clusterv1alpha1.Machine{}
	m.Name, m.Spec.Versions.Kubelet = "worker-1", "v1.36.3"
	m.Labels = map[string]string{"b": "of the Machine", "a": ""}
	m.Spec.Metadata.Labels = map[string]string{"b": "2", "node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "z"}
	m.Spec.Taints = []clusterv1alpha1.Taint{
		{Key: "example.com/gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "dedicated", Effect: corev1.TaintEffectNoExecute},
	}
	value := &m.Spec.ProviderSpec.Value
	value.OperatingSystem, value.OperatingSystemSpec.DistUpgradeOnBoot = clusterv1alpha1.OperatingSystemUbuntu, true
	value.SSHPublicKeys = []string{`ssh-ed25519 AAAA "me" # it's: [me]`}
	for _, c := range change {
		c(m)
	}
	return m
}

// TestRender shows the whole of it once.
func TestRender(t *testing.T) {
	got, err := Render(worker())
	if err != nil {
		t.Fatal(err)
	}
	want := `#cloud-config
hostname: worker-1
package_upgrade: true
ssh_authorized_keys:
- 'ssh-ed25519 AAAA "me" # it''s: [me]'
write_files:
- content: |
    KUBELET_EXTRA_ARGS="--hostname-override=worker-1 --node-labels=a=,b=2,topology.kubernetes.io/zone=z --register-with-taints=dedicated=:NoExecute,example.com/gpu=yes:NoSchedule"
  owner: root:root
  path: /etc/default/kubelet
  permissions: "0644"
- content: |
    1.36.3
  owner: root:root
  path: /etc/millwright/kubelet-version
  permissions: "0644"
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// TestRenderRefuses: what cannot be rendered is named.
func TestRenderRefuses(t *testing.T) {
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprintf("label-%d", i)] = strings.Repeat("v", 63)
	}
	for name, c := range map[string]struct {
		machine *clusterv1alpha1.Machine
		names   string
	}{
		"another system":          {worker(func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.OperatingSystem = "plan9" }), "plan9"},
		"a name with a space":     {worker(func(m *clusterv1alpha1.Machine) { m.Name = "a b" }), "a b"},
		"a label that breaks out": {worker(func(m *clusterv1alpha1.Machine) { m.Labels["x"] = `y" --v=9` }), `x=y`},
		"a taint without effect":  {worker(func(m *clusterv1alpha1.Machine) { m.Spec.Taints[0].Effect = "" }), "example.com/gpu"},
		"a key of two lines": {worker(func(m *clusterv1alpha1.Machine) {
			m.Spec.ProviderSpec.Value.SSHPublicKeys = []string{"a", "b\nruncmd: []"}
		}), "sshPublicKeys[1]"},
		"too much": {worker(func(m *clusterv1alpha1.Machine) { m.Labels = many }), "fewer labels"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := Render(c.machine)
			if err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, want one that names %q", err, c.names)
			}
			if data != nil {
				t.Errorf("%d bytes besides the error", len(data))
			}
			if err := Check(c.machine); name != "too much" && (err == nil || !strings.Contains(err.Error(), c.names)) {
				t.Errorf("the check says %v, want an error that names %q", err, c.names)
			}
		})
	}
}

// TestRenderHoldsWhatItWasGiven: whatever the strings, what is rendered is read back as what was
// given, and nothing more.
func TestRenderHoldsWhatItWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := worker()
		m.Spec.ProviderSpec.Value.SSHPublicKeys = rapid.SliceOfN(rapid.StringOfN(rapid.Rune(), 0, 40, -1), 1, 3).Draw(t, "keys")
		m.Labels = rapid.MapOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`ab-./ "'$=,`)), 1, 12, -1),
			rapid.StringOfN(rapid.RuneFrom([]rune(`ab-. "'$=,`)), 0, 12, -1), 0, 3).Draw(t, "labels")
		data, err := Render(m)
		if err != nil {
			return
		}
		var read map[string]any
		if err := yaml.UnmarshalStrict(data, &read); err != nil {
			t.Fatal(err)
		}
		if len(read) != 4 {
			t.Fatalf("keys %v", read)
		}
		keys, _ := read["ssh_authorized_keys"].([]any)
		for i, key := range keys {
			if key != m.Spec.ProviderSpec.Value.SSHPublicKeys[i] {
				t.Fatalf("key %q became %q", m.Spec.ProviderSpec.Value.SSHPublicKeys[i], key)
			}
		}
		args := read["write_files"].([]any)[0].(map[string]any)["content"].(string)
		if strings.ContainsAny(strings.Trim(args, "\n"), "\n'$\\") || strings.Count(args, `"`) != 2 {
			t.Fatalf("arguments break out: %q", args)
		}
		if again, _ := Render(m); string(again) != string(data) {
			t.Fatal("the same machine gave other user data")
		}
	})
}

// TestKubeletLabel follows NodeRestriction.
func TestKubeletLabel(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "example.com/a": true, "notkubernetes.io/a": true,
		"kubernetes.io/hostname": true, "topology.kubernetes.io/zone": true, "node.kubernetes.io/x": true, "a.kubelet.kubernetes.io/x": true,
		"node-role.kubernetes.io/worker": false, "kubernetes.io/x": false, "k8s.io/x": false, "cluster.k8s.io/x": false,
		"node-restriction.kubernetes.io/x": false,
	} {
		if got := KubeletLabel(key); got != want {
			t.Errorf("%s: %t, want %t", key, got, want)
		}
	}
}
