package docs

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/test/tier"
)

const (
	readme, install = "README.md", "docs/install.md"
	driverGuide     = "docs/writing-a-driver.md"
)

// scenario is what one reader does, from the repository's folder.
type scenario struct {
	// hasCluster says that there is a cluster without Millwright.
	hasCluster bool
	steps      []step
}

// await repeats a command until it works, for two minutes.
func await(command string) step {
	return step{own: "for i in {1..120}; do if " + command + " >/dev/null 2>&1; then break; fi; sleep 1; done; " + command}
}

var scenarios = map[string]scenario{
	"trying it": {steps: []step{
		{page: readme, first: "bin/millwright dev", with: map[string]string{".dev": "$WORK/dev"}, background: true},
		await("kubectl --kubeconfig $WORK/dev/kubeconfig get machinedeployments"),
		do(readme, "export KUBECONFIG", ".dev", "$WORK/dev"),
		do("docs/session.md", "cp cmd/demo/machinedeployment.yaml", " workers.yaml", " $WORK/workers.yaml"),

		{own: `kubectl apply -f cmd/demo/machinedeployment.yaml
kubectl wait machinedeployment/workers --for=condition=Ready --timeout=2m
machine=$(kubectl get machines -o jsonpath='{.items[0].metadata.name}')
kubectl create namespace team; kubectl create namespace argocd; kubectl create configmap argocd-cm --namespace argocd
sed s/1.35.0/1.35.1/ cmd/demo/machinedeployment.yaml > $WORK/workers.yaml`},
		do("docs/drivers.md", "kubectl millwright drivers"),
		do("docs/joining.md", "kubectl get csr", "csr NAME", "$(kubectl get csr -o name | head -1)"),
		do("docs/templates.md", "kubectl create rolebinding", "NAMESPACE", "team"),
		do("docs/rollouts.md", "kubectl millwright plan", "workers.yaml", "$WORK/workers.yaml"),
		do("docs/deletions.md", "kubectl get machine NAME -o jsonpath", "NAME", "$machine"),
		do("docs/health.md", "kubectl get machinehealthchecks"),
		do("docs/gitops.md", "kubectl patch configmap"),
		do("docs/gitops.md", "kubectl wait"),
		// Something has to hold the Machine that is forgotten.
		{own: "kubectl annotate machine $machine pre-terminate.delete.hook.machine.cluster.x-k8s.io/hold=reader"},
		do("docs/deletions.md", "kubectl delete machine NAME", "NAME", "$machine"),
	}},
	"installing it": {hasCluster: true, steps: []step{
		do(install, "helm install"),
		do("docs/uninstall.md", "kubectl millwright uninstall"),
		do(install, "kubectl apply"),
		do("docs/openstack.md", "kubectl apply"),
		{own: `kubectl config rename-context $(kubectl config current-context) management
cp $KUBECONFIG $WORK/both; export KUBECONFIG=$WORK/both
kubectl config set-context workload --cluster=$(kubectl config view -o jsonpath='{.clusters[0].name}') --user=$(kubectl config view -o jsonpath='{.users[0].name}')`},
		do("docs/two-clusters.md", "TOKEN=", "workload.kubeconfig", "$WORK/workload.kubeconfig"),
		{own: "kubectl --kubeconfig $WORK/workload.kubeconfig auth whoami"},
		do("docs/uninstall.md", "kubectl delete machinedeployments", " --watch", "", "helm uninstall millwright -n millwright-system ", "kubectl delete -k deploy/openstack "),
	}},
	"OpenStack": {hasCluster: true, steps: []step{
		do("docs/quickstart-openstack.md", "helm install"),
		do("docs/quickstart-openstack.md", "kubectl apply"),
	}},
	// The client is Debian's python3-openstackclient.
	"what is in a cloud": {steps: []step{
		{own: `openstack --version
bin/openstacksim -listen 127.0.0.1:0 > $WORK/openstack.json &`},
		await("test -s $WORK/openstack.json"),
		{own: `export OS_AUTH_URL=$(jq -r .identityEndpoint $WORK/openstack.json) OS_USERNAME=demo OS_PASSWORD=secret OS_PROJECT_NAME=demo
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default OS_REGION_NAME=RegionOne
neutron=$(openstack catalog show neutron -f json | jq -r '[.endpoints[] | select(.interface == "public")][0].url')`},
		do("docs/quickstart-openstack.md", "openstack application credential"),
		do("docs/openstack.md", "openstack --os-compute-api-version", "NEUTRON", "$neutron"),
	}},
	"a laptop": {steps: []step{
		do("docs/quickstart-laptop.md", "make build"),
		{page: "docs/quickstart-laptop.md", first: "bin/millwright dev", with: map[string]string{".dev": "$WORK/dev"}, background: true},
		await("kubectl --kubeconfig $WORK/dev/kubeconfig get machinedeployments"),
		do("docs/quickstart-laptop.md", "export KUBECONFIG", ".dev", "$WORK/dev"),
		do("docs/quickstart-laptop.md", "kubectl scale"),
	}},
	"a driver for another cloud": {steps: []step{
		do(driverGuide, "go build -o bin/"),
		{own: "repository=$PWD; cd $WORK; export GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0 GOCACHE=$(go env GOCACHE) XDG_CACHE_HOME=$WORK"},
		do(driverGuide, "millwright driver init", "unix:///tmp/", "unix://$WORK/"),
		{own: `fakecloud --listen unix://$WORK/cloud.sock --http 127.0.0.1:8180 --account default=default.key 2>cloud.log &
sed -n '/^apiVersion: cluster.k8s.io/,/^\x60\x60\x60/p' $repository/docs/writing-a-driver.md | sed '$d' > machine.yaml`},
		{page: driverGuide, first: "./millwright-driver-my-cloud", with: map[string]string{"/tmp/": "$WORK/"}, background: true},
		await("kubectl --kubeconfig $WORK/my-mill/kubeconfig get machines"),
		do(driverGuide, "export KUBECONFIG", "/tmp/", "$WORK/"),
	}},
	"trying a driver": {steps: []step{do("docs/conformance.md", "make build", "/tmp/", "$WORK/")}},
	"real VMs": {steps: []step{
		{own: "touch $WORK/debian-13.qcow2"},
		{page: "docs/qemu.md", first: "mkdir -p", background: true, with: map[string]string{
			"/run/millwright": "$WORK/run", "/var/lib": "$WORK", "debian-13": "$WORK/debian-13",
		}},
		await("test -S $WORK/run/qemu.sock"),
	}},
	"images and a release": {steps: []step{
		do("docs/releasing.md", "make images", "registry.example.com", "$REGISTRY"),
		do("docs/releasing.md", "make release", "registry.example.com", "$REGISTRY"),
	}},
	"a demonstration": {steps: []step{do(readme, "make demo")}},
	// A thousand machines take ten minutes each time.
	"a benchmark": {steps: []step{
		{own: "export N=100 IDLE=10s"},
		do("docs/benchmarks.md", "make bench", "N=5000", "N=150", "bin/bench-5000", "$WORK/bench", "PROFILES=prof", "PROFILES=$WORK/prof"),
	}},
	"chaos": {steps: []step{
		do("docs/chaos.md", "make chaos", "ROUNDS=300", "ROUNDS=2", "ROUNDS=100", "ROUNDS=2", "ROUNDS=200", "ROUNDS=2", "ROUNDS=41", "ROUNDS=2", "/tmp/mwc", "$WORK/c"),
	}},
}

// Every command of the documentation is run.
func TestEveryCommandIsRun(t *testing.T) {
	var named []string
	for _, s := range scenarios {
		for _, step := range s.steps {
			if step.page != "" {
				named = append(named, step.page+": "+step.first)
			}
		}
	}
	found := map[string]bool{}
	for _, b := range blocks(t) {
		at := slices.IndexFunc(named, func(name string) bool { return strings.HasPrefix(b.page+": "+b.first(), name) })
		if at < 0 {
			t.Errorf("%s:%d: nobody runs %q", b.page, b.line, b.first())
			continue
		}
		found[named[at]] = true
	}
	for _, name := range named {
		if !found[name] {
			t.Errorf("there is nothing that begins with %q", name)
		}
	}
}

// What the documentation says works, as its reader types it.
func TestCommandsWork(t *testing.T) {
	tier.Long(t, "scenarios of the documentation take minutes")
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			// Not t.TempDir: a socket's path has to be short.
			work, err := os.MkdirTemp("", "docs")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(work) })
			images := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
			t.Cleanup(images.Close)
			environment := []string{"WORK=" + work, "REGISTRY=" + images.Listener.Addr().String()}
			if s.hasCluster {
				environment = append(environment, "KUBECONFIG="+startCluster(t, work))
			}
			t.Log(follow(t, top, script(t, s.steps), environment...))
		})
	}
}

// startCluster starts a cluster without Millwright and returns its kubeconfig.
func startCluster(t *testing.T, work string) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(top, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{BinDir: bin, Dir: filepath.Join(work, "cluster")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster.Kubeconfig()
}
