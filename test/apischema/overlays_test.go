package apischema

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const deployDir = "../../deploy"

// kept are the kinds that no overlay of the manager may hold: they would go with it.
var kept = []string{
	"CustomResourceDefinition", "Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// keeping are the folders that hold them. The manager is not applied with any of these, and runs in
// another cluster than the last.
var keeping = []string{"crds", "crds/bootstrap-tokens", "two-clusters/workload"}

// Every kustomization in deploy can be built, a component on top of an overlay. What outlives the
// manager is in no other folder, and the API server takes all of it.
func TestOPS5_EveryOverlayBuilds(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	applyCRDs(u)
	for folder, kind := range kustomizations(t) {
		t.Run(folder, func(t *testing.T) {
			u := u.in(t)
			built := filepath.Join(deployDir, folder)
			if kind == "Component" {
				built = overlayWith(t, folder)
			}
			manifest := u.do("", "kustomize", built)
			for _, kind := range kindsIn(t, manifest) {
				if !slices.Contains(keeping, folder) && slices.Contains(kept, kind) {
					t.Errorf("it has a %s, which would go with the manager", kind)
				}
			}
			// The Prometheus operator's kinds are not there.
			if folder != "alerts" {
				// Objects say themselves in which namespace they are: not all are in one.
				u.do("", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--namespace=", "-k", built)
			}
		})
	}
}

// kustomizations returns the kind of each kustomization in deploy, by its folder.
func kustomizations(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(deployDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var kustomization struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(text, &kustomization); err != nil {
			return err
		}
		folder, err := filepath.Rel(deployDir, filepath.Dir(path))
		found[folder] = kustomization.Kind
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 8 {
		t.Errorf("there are only %d kustomizations in deploy: this test looks in the wrong place", len(found))
	}
	return found
}

// overlayWith returns a folder with an overlay of the OpenStack manager and a component.
func overlayWith(t *testing.T, component string) string {
	t.Helper()
	// Names of folders in a kustomization are relative to it, behind all symbolic links.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(deployDir)
	if err != nil {
		t.Fatal(err)
	}
	if deploy, err = filepath.Rel(dir, deploy); err != nil {
		t.Fatal(err)
	}
	overlay := "resources: [" + filepath.Join(deploy, "openstack") + "]\ncomponents: [" + filepath.Join(deploy, component) + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// kindsIn returns the kinds of the objects in a manifest.
func kindsIn(t *testing.T, manifest string) []string {
	t.Helper()
	var kinds []string
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var object struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, object.Kind)
	}
	if len(kinds) == 0 {
		t.Error("it holds nothing")
	}
	return kinds
}

// The manager finds a place in a cluster that has nothing but its control plane, is spread, and
// keeps a leader while Nodes are drained.
func TestOPS5_TheManagerFindsAPlace(t *testing.T) {
	u := newUser(t)
	manifest := u.do("", "kustomize", overlayWith(t, "sizes/10000"))
	pod := managersPod(t, manifest)
	if len(pod.Tolerations) == 0 || pod.Tolerations[0].Key != "node-role.kubernetes.io/control-plane" {
		t.Errorf("it tolerates %v", pod.Tolerations)
	}
	if len(pod.TopologySpreadConstraints) == 0 {
		t.Error("it is not spread")
	}
	if got := pod.Containers[0].Resources.Limits["memory"]; got != "1536Mi" {
		t.Errorf("for 10,000 machines the manager has %q of memory", got)
	}
	if got := pod.InitContainers[0].Resources.Limits["memory"]; got != "1Gi" {
		t.Errorf("for 10,000 machines the driver has %q of memory", got)
	}
	if !slices.Contains(kindsIn(t, manifest), "PodDisruptionBudget") {
		t.Error("it has no PodDisruptionBudget")
	}
}

// A driver is code of somebody else's, and all containers of a pod get the token of its
// ServiceAccount unless somebody says otherwise.
func TestOPS5_OnlyTheManagerHasItsToken(t *testing.T) {
	const token = "/var/run/secrets/kubernetes.io/serviceaccount"
	u := newUser(t)
	for _, overlay := range []string{filepath.Join(deployDir, "fake"), overlayWith(t, "openstack/clouds"), overlayWith(t, "webhook")} {
		pod := managersPod(t, u.do("", "kustomize", overlay))
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: every container gets the token", overlay)
		}
		if pod.ShareProcessNamespace || len(pod.InitContainers) == 0 {
			t.Errorf("%s: shares processes: %t; %d drivers", overlay, pod.ShareProcessNamespace, len(pod.InitContainers))
		}
		var volume string
		for _, mount := range pod.Containers[0].VolumeMounts {
			if mount.MountPath == token {
				volume = mount.Name
			}
		}
		for _, v := range pod.Volumes {
			has := slices.ContainsFunc(v.Projected.Sources, func(s source) bool { return s.ServiceAccountToken != nil })
			if has != (v.Name == volume) {
				t.Errorf("%s: volume %s has a token: %t; the manager mounts %q", overlay, v.Name, has, volume)
			}
		}
		for _, driver := range slices.Concat(pod.InitContainers, pod.Containers[1:]) {
			if slices.ContainsFunc(driver.VolumeMounts, func(m mount) bool { return m.Name == volume }) {
				t.Errorf("%s: %s gets the manager's token", overlay, driver.Name)
			}
		}
	}
}

// managersPod is the pod of the Deployment in a manifest.
func managersPod(t *testing.T, manifest string) podSpec {
	t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var manager struct {
			Spec struct{ Template struct{ Spec podSpec } }
		}
		if !strings.Contains(document, "kind: Deployment\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &manager); err != nil {
			t.Fatal(err)
		}
		return manager.Spec.Template.Spec
	}
	t.Fatal("there is no Deployment")
	return podSpec{}
}

// podSpec is what is looked at of a pod.
type podSpec struct {
	Tolerations                  []struct{ Key string }
	TopologySpreadConstraints    []struct{ TopologyKey string }
	AutomountServiceAccountToken *bool
	ShareProcessNamespace        bool
	Containers                   []container
	InitContainers               []container
	Volumes                      []struct {
		Name      string
		Projected struct{ Sources []source }
	}
}

type source struct{ ServiceAccountToken *struct{ Path string } }

type container struct {
	Name         string
	Resources    struct{ Limits map[string]string }
	VolumeMounts []mount
}

type mount struct{ Name, MountPath string }
