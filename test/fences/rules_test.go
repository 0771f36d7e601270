package fences

// root is the path under which all of our modules lie.
const root = "github.com/millwright-dev/millwright/"

// A rule says what some of our packages must never be linked with.
//
// Packages are named by a prefix of whole path elements: "k8s.io" matches
// k8s.io/api, not k8s.iox. With a $ behind it, a name is of one package and none below. Ours are
// named by their folder.
type rule struct {
	// from are folders, ours. A folder that does not exist is skipped, so that a
	// rule can be there before what it guards; one without packages is an error.
	from []string
	// never are imports that must not be reached, by however many steps.
	never []string
	// neverDirectly are imports that must not stand in a source file. It serves
	// where a permitted import reaches the forbidden one for its own purposes.
	neverDirectly []string
	// only, unless empty, are the imports outside the standard library that may
	// stand in a source file; those of the same folder may always.
	only []string
	// tests extends the rule to tests and what they import.
	tests bool
	// reason tells whoever runs into the fence why it stands there.
	reason string
}

// pure are the packages that decide and do nothing else.
var pure = []string{
	"core/rollout", "core/scale", "core/lifecycle", "core/health", "core/orphan", "core/instance", "core/providerspec",
	"core/foreign", "core/annotations", "core/machinetemplate", "core/driver/limiter",
	"core/bootstrap/token", "core/bootstrap/csr", "core/healthcheck", "core/forecast",
	"core/earliest", "core/messages",
}

var kubernetes = []string{"k8s.io", "sigs.k8s.io"}

// rules are the fences. The linter enforces some of them earlier; it cannot see
// the dependencies of a dependency.
var rules = map[string]rule{
	"core does not know clouds": {
		from: []string{"core"}, never: []string{root + "providers"}, tests: true,
		reason: "a cloud is a process behind the contract; what core could import, it would come to rely on",
	},
	"core does not use the SDK": {
		from: []string{"core"}, never: []string{root + "sdk"}, tests: true,
		reason: "code shared by both ends of the wire hides promises that drivers in other languages cannot see",
	},
	"conformance does not use the SDK": {
		from: []string{"conformance"}, never: []string{root + "sdk", root + "core", root + "api"}, tests: true,
		reason: "the harness judges drivers in any language: a fault of the SDK's must not be on both sides of a check",
	},
	"providers do not know Kubernetes": {
		from: []string{"providers"}, never: append([]string{root + "api", root + "core"}, kubernetes...), tests: true,
		reason: "a driver depends on the contract alone: core and drivers are upgraded one at a time",
	},
	"the SDK does not know Kubernetes": {
		from: []string{"sdk"}, never: append([]string{root + "api", root + "core", root + "providers"}, kubernetes...), tests: true,
		reason: "whoever imports the SDK would inherit Kubernetes' versions, or one provider's",
	},
	"the contract needs grpc and protobuf": {
		from:  []string{"proto"},
		never: append([]string{root + "api", root + "core", root + "sdk", root + "providers"}, kubernetes...), tests: true,
		reason: "both sides of the wire and every author import the contract; it must not choose sides",
	},
	"the contract needs nothing else": {
		from:   []string{"proto"},
		only:   []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc"},
		reason: "each requirement of the contract is one of every driver",
	},
	"both ends of the wire share the wire alone": {
		from: []string{"transport"}, never: append([]string{root + "api", root + "core", root + "sdk", root + "conformance", root + "providers"}, kubernetes...),
		tests: true, reason: "core, SDK and harness reach drivers the same way; what they make of it is each one's own",
	},
	"the API does not know the contract": {
		from: []string{"api"}, never: []string{root + "proto", root + "core", root + "sdk", root + "providers"}, tests: true,
		reason: "what users declare outlives any version of the wire",
	},
	"the API is types": {
		from:   []string{"api"},
		never:  []string{"google.golang.org/grpc", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
		reason: "a tool that only reads Machines must not be held to our versions of clients and frameworks",
	},
	"pure packages do nothing": {
		from: pure,
		never: []string{
			"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "google.golang.org/grpc",
			root + "proto", root + "core/bootstrap/discovery", root + "core/driver", root + "core/drain",
			root + "core/controllers", root + "core/manager",
		},
		reason: "observe, plan, apply: what decides must not be able to look or to act, or no test can generate its histories",
	},
	"pure packages are given what they need": {
		from: pure,
		neverDirectly: []string{
			"context", "log", "github.com/go-logr", "k8s.io/klog", "k8s.io/utils/clock",
			"math/rand", "crypto/rand", "github.com/google/uuid", "k8s.io/apimachinery/pkg/util/uuid",
			"k8s.io/apimachinery/pkg/util/rand", "io", "net", "os", "sync", "syscall", "unsafe",
		},
		reason: "time and order enter as values, and what there is to say is returned: the same state gives the same plan",
	},
	"core calls no methods by name": {
		from:          []string{"api", "core", "proto", "transport"},
		neverDirectly: []string{"text/template$", "html/template$", "net/rpc$"},
		reason: "a program that can execute a template keeps every exported method of every type it uses: that was 17 MB of the manager, " +
			"and 10 MiB of its memory (ADR 35); text/template/parse is free of it",
	},
	"simulated kubelets read what a machine reads": {
		from: []string{"localcluster"}, never: []string{root + "core", root + "providers", root + "sdk"},
		reason: "a simulation that shares code with what it tests agrees with it by construction",
	},
	"nobody imports commands or tests": {
		from:  []string{"api", "conformance", "core", "localcluster", "proto", "providers", "sdk", "transport"},
		never: []string{root + "cmd", root + "test"}, tests: true,
		reason: "commands wire libraries together; an arrow back is a library in the wrong place",
	},
}
