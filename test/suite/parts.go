package suite

import "slices"

// Steps are those of `make test`, in their order: what fails fastest comes first.
func Steps() []string {
	return []string{"fences", "lint", "build", "verify", "standalone", "unit", "api", "e2e", "conformance", "docs-links"}
}

// Part is one of `make test-long`.
type Part struct {
	// Name is the part's target of the Makefile, and of PART=.
	Name string
	// Shows says what the part shows, in a few words.
	Shows string
	// Packages are the part's Go packages, as patterns below the top of the repository.
	// Everything that they import or test with is an input.
	Packages []string
	// Files are the other inputs, as patterns below the top: `*` stands for a part of a name, `**`
	// for any number of folders.
	Files []string
}

// recipes say how each part is done.
var recipes = []string{"Makefile", "tools/build.sh", "tools/packages.sh"}

// The inputs of all tests that run whole processes on a control plane.
var (
	commands     = []string{"./cmd/...", "./localcluster/...", "./providers/fake/...", "./providers/openstack/..."}
	controlPlane = []string{"tools/controlplane/**", "localcluster/config/**", "deploy/**"}
	nodeImage    = []string{"tools/nodeimage/**", "tools/containerd/**", "tools/controlplane/**"}
	services     = []string{"test/openstack/**"}
)

// Parts are those of `make test-long`. None takes over an hour on two cores.
func Parts() []Part {
	parts := slices.Concat(ofRaces(), ofTools(), ofRealMachines())
	for i := range parts {
		parts[i].Files = append(parts[i].Files, recipes...)
	}
	return parts
}

// ofRaces are the tests of this repository's own processes, under the race detector.
func ofRaces() []Part {
	return []Part{
		{
			Name: "race-unit", Shows: "the tests of all packages, under the race detector",
			Packages: []string{
				"./api/...", "./cmd/...", "./conformance/...", "./core/...", "./proto/...", "./providers/...", "./sdk/...", "./transport/...", "./localcluster/...", "./test/...",
			},
			Files: with(controlPlane, "docs/openstack.md", "test/openstack/**"),
		},
		{
			Name: "race-e2e", Shows: "whole processes under the race detector, the long tests whole",
			Packages: with(commands, "./test/e2e/...", "./test/canaries/...", "./test/apischema/...", "./test/examplenode/...", "./test/chaos/...", "./test/bench/..."),
			Files:    with(controlPlane, "tools/helm/**", "providers/example-node/**"),
		},
		{
			Name: "race-openstack", Shows: "the same on the simulator of OpenStack",
			Packages: with(commands, "./test/e2e/..."), Files: with(controlPlane, "test/openstack/world.json"),
		},
		{
			Name: "race-outages", Shows: "the same with two clusters, one or the other away",
			Packages: with(commands, "./test/e2e/..."), Files: controlPlane,
		},
		{
			Name: "skew", Shows: "core and drivers of this release and the one before, in either order",
			Packages: with(commands, "./test/e2e/..."), Files: with(controlPlane, "tools/previous/**"),
		},
		{
			Name: "oldest-kubernetes", Shows: "whole processes on Kubernetes 1.34",
			Packages: with(commands, "./test/e2e/..."), Files: with(controlPlane, "tools/controlplane-1.34/**", "tools/helm/**"),
		},
		{
			Name: "mutants", Shows: "the harness finds every mutant, the slow ones too",
			Packages: []string{"./conformance/...", "./providers/...", "./sdk/...", "./transport/..."}, Files: []string{"providers/*/conformance.yaml"},
		},
	}
}

// ofTools are about what is beside them: what users read, release and look at.
func ofTools() []Part {
	return []Part{
		{
			Name: "userdata", Shows: "user data as cloud-init, Ignition and systemd read it",
			Packages: []string{"./test/userdata/...", "./core/bootstrap/..."}, Files: []string{"tools/ignition/**", "tools/nodeimage/**"},
		},
		{
			Name: "docs-test", Shows: "the commands of the documentation, as a reader types them",
			Packages: with(commands, "./test/docs/...", "./providers/example/..."), Files: with(controlPlane, "docs/**", "README.md", "tools/release/**", "tools/helm/**"),
		},
		{
			Name: "chaos-long", Shows: "random kills on every cloud, and all planted bugs",
			Packages: with(commands, "./test/chaos/..."), Files: controlPlane,
		},
		{
			Name: "release-modules", Shows: "the release and its modules, under the race detector", Packages: []string{"./api/..."},
			Files: []string{"tools/release/**", "**/go.mod", "**/go.sum", "deploy/**", "LICENSE"},
		},
		{Name: "monitoring", Shows: "alerts and dashboards", Files: []string{"tools/monitoring/**", "deploy/alerts/**", "deploy/dashboards/**", "docs/**"}},
		{Name: "vet", Shows: "go vet of each module by itself, its tests too", Packages: []string{"./..."}, Files: []string{"**/go.mod", "**/*.go"}},
	}
}

// ofRealMachines need virtual machines, or real services of OpenStack.
func ofRealMachines() []Part {
	return []Part{
		{
			Name: "test-qemu", Shows: "real VMs of QEMU join, roll, break and are killed",
			Packages: with(commands, "./providers/qemu/...", "./test/realvm/..."), Files: with(nodeImage, "deploy/**", "localcluster/config/**", "tools/kubelet-1.35/**", "tools/helm/**", "tools/release/**"),
		},
		{
			Name: "test-openstack", Shows: "real services of OpenStack: the API as the simulator has it, the driver, end to end, kills",
			Packages: with(commands, "./test/openstack/...", "./test/chaos/...", "./test/e2e/..."), Files: with(controlPlane, services...),
		},
		{
			Name: "test-openstack-boot", Shows: "servers of real Nova boot and become Nodes",
			Packages: []string{"./test/realvm/...", "./providers/openstack/...", "./core/bootstrap/...", "./cmd/millwright-manager/...", "./test/openstack/..."},
			Files:    slices.Concat(nodeImage, services, controlPlane),
		},
	}
}

// with returns the patterns and more of them.
func with(patterns []string, more ...string) []string {
	return append(append([]string{}, patterns...), more...)
}
