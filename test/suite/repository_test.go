package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// top is the repository itself.
const top = "../.."

func openTop(t *testing.T) *Tree {
	t.Helper()
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// The long tests prove what these files do: to change one selects them.
func TestAChangeSelectsTheTestsThatProveIt(t *testing.T) {
	tree := openTop(t)
	inputs := map[string]Inputs{}
	for _, part := range Parts() {
		in, err := tree.Inputs(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		inputs[part.Name] = in
	}
	for file, parts := range map[string][]string{
		"Makefile":                           {"race-unit", "vet", "test-openstack-boot"},
		"tools/build.sh":                     {"race-unit", "test-qemu"},
		"providers/example-node/src/main.ts": {"race-e2e"},
		"providers/example/cmd/millwright-driver-example/driver.go": {"mutants", "docs-test"},
		"docs/monitoring.md":              {"monitoring"},
		"tools/nodeimage/initrd.sh":       {"test-qemu", "test-openstack-boot", "userdata"},
		"tools/nodeimage/packages":        {"test-qemu", "test-openstack-boot"},
		"tools/containerd/go.mod":         {"test-qemu", "test-openstack-boot"},
		"tools/controlplane/go.mod":       {"race-unit", "race-e2e", "test-qemu", "test-openstack-boot"},
		"tools/ignition/go.mod":           {"userdata"},
		"tools/previous/COMMIT":           {"skew"},
		"tools/monitoring/alerts_test.go": {"monitoring"},
		"tools/release/images.go":         {"release-modules", "docs-test"},
		"tools/kubelet-1.35/go.mod":       {"test-qemu"},
		"tools/controlplane-1.34/go.mod":  {"oldest-kubernetes"},
		"core/bootstrap/render.go":        {"race-unit", "race-e2e", "userdata", "test-qemu", "test-openstack-boot"},
		"core/bootstrap/static/autoupdate/flatcar/etc/flatcar/update.conf": {"userdata", "test-qemu", "test-openstack-boot"},
		"core/lifecycle/next.go":                         {"race-unit", "race-e2e", "race-outages", "chaos-long", "test-openstack", "test-qemu", "test-openstack-boot"},
		"providers/openstack/spec/schema.json":           {"race-unit", "race-openstack", "test-openstack", "test-openstack-boot"},
		"providers/openstack/driver/plan.go":             {"test-openstack", "test-openstack-boot"},
		"providers/qemu/driver/reserve.go":               {"race-unit", "test-qemu"},
		"providers/fake/conformance.yaml":                {"mutants"},
		"conformance/mutant/all_test.go":                 {"mutants"},
		"transport/go.sum":                               {"race-unit", "race-e2e"},
		"deploy/crds/cluster.k8s.io_machines.yaml":       {"race-unit", "race-e2e", "chaos-long", "test-openstack", "test-qemu"},
		"deploy/alerts/prometheus_rule.yaml":             {"monitoring", "race-e2e"},
		"docs/conformance.md":                            {"docs-test"},
		"test/openstack/world.json":                      {"race-openstack", "test-openstack", "test-openstack-boot"},
		"test/openstack/cloud/libvirt.sh":                {"test-openstack", "test-openstack-boot"},
		"test/realvm/join_test.go":                       {"test-qemu", "test-openstack-boot"},
		"localcluster/config/audit.yaml":                 {"race-e2e"},
		"proto/millwright/driver/v1alpha1/machine.proto": {"race-unit", "race-e2e", "mutants"},
	} {
		if !slices.Contains(tree.files, file) {
			t.Errorf("there is no file %s", file)
		}
		for _, part := range parts {
			if !inputs[part].Contains(file) {
				t.Errorf("%s is no input of %s", file, part)
			}
		}
	}
	// Prose and foreign tests select nothing that takes long.
	for part, in := range inputs {
		for _, file := range []string{"CHANGELOG.md", "CONTRIBUTING.md", ".gitignore"} {
			if in.Contains(file) {
				t.Errorf("%s is an input of %s", file, part)
			}
		}
	}
	if inputs["monitoring"].Contains("core/lifecycle/next.go") || inputs["mutants"].Contains("core/lifecycle/next.go") {
		t.Error("core/lifecycle is an input of parts that do not contain it")
	}
}

// A pattern that no file matches any longer would hide a change.
func TestEveryPatternOfAPartMatchesAFile(t *testing.T) {
	tree := openTop(t)
	for _, part := range Parts() {
		for _, pattern := range part.Files {
			if !slices.ContainsFunc(tree.files, compile(pattern).MatchString) {
				t.Errorf("part %s: no file matches %q", part.Name, pattern)
			}
		}
	}
}

// The Makefile has a target for each step and each part, and CI runs `make test`.
func TestEveryStepIsATarget(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	names := Steps()
	for _, part := range Parts() {
		names = append(names, part.Name)
	}
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `:`).Match(makefile) {
			t.Errorf("the Makefile has no target %q", name)
		}
	}
	ci, err := os.ReadFile(filepath.Join(top, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ci), "make test\n") {
		t.Error(".ci/run does not run `make test`")
	}
}
