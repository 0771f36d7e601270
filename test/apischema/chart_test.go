package apischema

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	chartDir = deployDir + "/charts/millwright"
	// ofARelease says which images are meant; a chart of a release knows that itself.
	ofARelease = "--set=images.tag=v0.1.0"
)

// helm runs helm in the user's namespace, with values as its standard input, and returns both
// outputs and how it ended.
func (u *user) helm(values string, args ...string) (stdout, stderr string, err error) {
	return u.run(filepath.Join(binDir, "tools", "helm"), values, append(args, "--namespace", u.namespace)...)
}

// rendered is what the chart makes of values.
func (u *user) rendered(values string, args ...string) string {
	u.t.Helper()
	stdout, stderr, err := u.helm(values, append([]string{"template", "millwright", chartDir, "--values", "-", ofARelease}, args...)...)
	if err != nil {
		u.t.Fatalf("helm template: %v: %s", err, stderr)
	}
	return stdout
}

// The chart and the kustomizations are two ways to the same objects.
func TestOPS5_TheChartRendersWhatKustomizeDoes(t *testing.T) {
	t.Parallel()
	const sizes = `
manager: {resources: {requests: {cpu: "1", memory: 768Mi}, limits: {memory: 1536Mi}}}
drivers: {openstack: {resources: {requests: {cpu: 500m, memory: 256Mi}, limits: {memory: 1Gi}}}}`
	u := newUser(t)
	u.namespace = "millwright-system"
	fake := filepath.Join(deployDir, "fake")
	for name, want := range map[string]struct {
		overlay, values string
	}{
		"openstack":                  {overlay: filepath.Join(deployDir, "openstack")},
		"a network policy":           {overlay: overlayWith(t, "openstack/network-policy"), values: "networkPolicy: {enabled: true}"},
		"openstack with clouds.yaml": {overlay: overlayWith(t, "openstack/clouds"), values: "drivers: {openstack: {cloudsSecret: millwright-openstack}}"},
		"10,000 machines":            {overlay: overlayWith(t, "sizes/10000"), values: sizes},
		"two clusters":               {overlay: overlayWith(t, "two-clusters/manager"), values: "workload: {kubeconfigSecret: millwright-workload}"},
		"alerts":                     {overlay: overlayWith(t, "alerts"), values: "prometheusRule: {enabled: true}"},
		"dashboards":                 {overlay: overlayWith(t, "dashboards"), values: "dashboards: {enabled: true}"},
		"the webhook":                {overlay: overlayWith(t, "webhook"), values: "webhook: {enabled: true, certificate: secret, caBundle: aGk=}"},
		"fake": {overlay: fake, values: `
replicas: 1
drivers: {openstack: {enabled: false}, fake: {enabled: true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			u := u.in(t)
			kustomize := objects(t, u.do("", "kustomize", want.overlay))
			maps.Copy(kustomize, objects(t, u.do("", "kustomize", crdsDir)))
			delete(kustomize, "Namespace/millwright-system") // `helm install --create-namespace` makes it
			chart := objects(t, u.rendered(want.values))
			if diff := cmp.Diff(kustomize, chart); diff != "" {
				t.Errorf("kustomize (-) and the chart (+) differ:\n%s", diff)
			}
			if len(chart) < 25 {
				t.Errorf("there are only %d objects", len(chart))
			}
		})
	}
}

// objects are those of a manifest by kind, namespace and name, without what Helm or an image's
// place adds.
func objects(t *testing.T, manifest string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for document := range strings.SplitSeq(manifest, "\n---") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "" {
			continue
		}
		annotations := object.GetAnnotations()
		delete(annotations, "helm.sh/resource-policy")
		if len(annotations) == 0 {
			annotations = nil
		}
		object.SetAnnotations(annotations)
		switch object.GetKind() {
		case "Deployment":
			pod := nested(t, object.Object, "spec", "template", "spec")
			sortByName(pod["volumes"])
			for _, list := range []string{"containers", "initContainers"} {
				for _, container := range pod[list].([]any) {
					container := container.(map[string]any)
					image, _, _ := strings.Cut(container["image"].(string), ":")
					container["image"] = path.Base(image)
					sortByName(container["volumeMounts"])
					delete(container, "imagePullPolicy")
				}
			}
		case "ValidatingWebhookConfiguration":
			delete(object.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any), "caBundle")
		}
		key := strings.ReplaceAll(fmt.Sprintf("%s/%s/%s", object.GetKind(), object.GetNamespace(), object.GetName()), "//", "/")
		if found[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		found[key] = object.Object
	}
	return found
}

// The command of docs/gitops.md adds Argo CD's health checks to what its ConfigMap has.
func TestOPS6_ArgosConfigMapIsPatched(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do("", "create", "configmap", "argocd-cm", "--from-literal=url=https://argo.example.com")
	u.do("", "patch", "configmap", "argocd-cm", "--patch-file", deployDir+"/argocd/argocd-cm.yaml")
	data := u.do("", "get", "configmap", "argocd-cm", "-o", "jsonpath={.data}")
	for _, want := range []string{"https://argo.example.com", "resource.customizations.health.cluster.k8s.io_MachineDeployment"} {
		if !strings.Contains(data, want) {
			t.Errorf("it lacks %s: %s", want, data)
		}
	}
}

// sortByName sorts a list whose order means nothing.
func sortByName(list any) {
	slices.SortFunc(list.([]any), func(a, b any) int {
		return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
}

// nested is the part of an object at a path.
func nested(t *testing.T, object map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, step := range path {
		part, ok := object[step].(map[string]any)
		if !ok {
			t.Fatalf("it has no %s", strings.Join(path, "."))
		}
		object = part
	}
	return object
}

// Wrong values are refused by their names, before anything is installed.
func TestOPS5_TheChartRefusesWrongValues(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for value, name := range map[string]string{
		`replica: 2`:             "replica",
		`replicas: two`:          "replicas",
		`replicas: 99`:           "replicas",
		`images: {registry: ""}`: "registry",
		`images: {registry: "https://registry.example.com"}`:  "registry",
		`images: {pullPolicy: Sometimes}`:                     "pullPolicy",
		`manager: {verbosity: 9}`:                             "verbosity",
		`manager: {args: [read-only]}`:                        "args",
		`drivers: {aws: {enabled: true}}`:                     "aws",
		`drivers: {openstack: {cloudsSecret: "A B"}}`:         "cloudsSecret",
		`drivers: {extra: [{name: Sawmill, image: sawmill}]}`: "name",
		`drivers: {extra: [{name: sawmill}]}`:                 "extra",
		`drivers: {extra: [{name: sawmill, address: "a:1"}]}`: "address",
		`webhook: {certificate: letsencrypt}`:                 "certificate",
		`webhook: {enabled: true, certificate: secret}`:       "caBundle",
		`networkPolicy: {cloudPorts: [70000]}`:                "cloudPorts",
		`podMonitor: {interval: 30}`:                          "interval",
		`credentialNamespaces: [Team]`:                        "credentialNamespaces",
		`workload: {kubeconfig: "apiVersion: v1"}`:            "kubeconfig",
		`crds: {keep: false}`:                                 "keep",
		`drivers: {extra: [{name: openstack, image: mine}]}`:  "two drivers of the name openstack",
		`podLabels: {app.kubernetes.io/name: mine}`:           "app.kubernetes.io/name",
		`drivers: {fake: {enabled: true}}`:                    "replicas",
	} {
		_, stderr, err := u.helm(value, "template", "millwright", chartDir, ofARelease, "--values", "-")
		if err == nil || !strings.Contains(stderr, name) {
			t.Errorf("%s: %v: %s: want it refused by the name %s", value, err, stderr, name)
		}
	}
}

// Drivers of others are sidecars, or are called elsewhere by mTLS.
func TestOPS5_TheChartTakesOthersDrivers(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	manifest := u.rendered(`
drivers:
  openstack: {enabled: false}
  extra:
    - {name: sawmill, image: "registry.example.com/sawmill/driver:v7", args: [--zone=north]}
    - {name: faraway, address: "dns:///driver.example.com:8443", tlsSecret: faraway-tls}
allowEndpoints: ["*.example.com"]
credentialNamespaces: [team]
podMonitor: {enabled: true}
networkPolicy: {enabled: true}
`, "--skip-tests")
	manager := objects(t, manifest)["Deployment/"+u.namespace+"/millwright-manager"]
	pod := nested(t, manager, "spec", "template", "spec")
	args := pod["containers"].([]any)[0].(map[string]any)["args"].([]any)
	for _, want := range []any{
		"--driver=sawmill=unix:///run/millwright/sawmill.sock",
		"--driver=faraway=dns:///driver.example.com:8443?tls=/etc/millwright/drivers/faraway",
		"--allow-endpoint=*.example.com",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("the manager has the arguments %v, without %v", args, want)
		}
	}
	sidecars := pod["initContainers"].([]any)
	if len(sidecars) != 1 || sidecars[0].(map[string]any)["name"] != "driver-sawmill" {
		t.Errorf("the sidecars are %v", sidecars)
	}
	if !strings.Contains(manifest, "image: registry.example.com/sawmill/driver:v7\n") {
		t.Error("the sidecar has another image than its own")
	}
	policy := fmt.Sprint(objects(t, manifest)["NetworkPolicy/"+u.namespace+"/millwright-manager-egress"])
	if !strings.Contains(policy, "port:8443 protocol:TCP") {
		t.Errorf("the network policy keeps the manager from faraway: %s", policy)
	}
	if !strings.Contains(manifest, "secretName: faraway-tls") {
		t.Error("the manager lacks the certificate for faraway")
	}
	applyCRDs(u) // a dry run makes no namespaces
	u.do("", "create", "namespace", "team")
	u.do(withoutKinds(manifest, "PodMonitor"), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--namespace=", "-f", "-")
}

// withoutKinds leaves out what the API server has no CRD for.
func withoutKinds(manifest, kind string) string {
	documents := strings.Split(manifest, "\n---")
	return strings.Join(slices.DeleteFunc(documents, func(d string) bool { return strings.Contains(d, "\nkind: "+kind) }), "\n---")
}

func TestOPS5_TheChartIsWellMade(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	if stdout, stderr, err := u.helm("", "lint", "--strict", chartDir, ofARelease); err != nil {
		t.Errorf("helm lint: %v: %s%s", err, stdout, stderr)
	}
}

// checkWebhookCertificate: the chart signs a certificate for the webhook, keeps it, and makes
// another when it is old. Then the API server trusts both.
func (u *user) checkWebhookCertificate() {
	u.t.Helper()
	const values = "webhook: {enabled: true}"
	upgrade := func() (leaf *x509.Certificate, trusted *x509.CertPool) {
		u.t.Helper()
		if _, stderr, err := u.helm(values, "upgrade", "millwright", chartDir, "--values", "-", ofARelease, "--force-conflicts"); err != nil {
			u.t.Fatalf("upgrade with the webhook: %v: %s", err, stderr)
		}
		var secret corev1.Secret
		var hooks admissionregistrationv1.ValidatingWebhookConfiguration
		for name, into := range map[string]any{"secret/millwright-webhook": &secret, "validatingwebhookconfiguration/millwright": &hooks} {
			if err := json.Unmarshal([]byte(u.do("", "get", name, "-o", "json")), into); err != nil {
				u.t.Fatal(err)
			}
		}
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			u.t.Fatal(err)
		}
		trusted = x509.NewCertPool()
		trusted.AppendCertsFromPEM(hooks.Webhooks[0].ClientConfig.CABundle)
		return pair.Leaf, trusted
	}
	check := func(why string, leaf *x509.Certificate, trusted *x509.CertPool) {
		u.t.Helper()
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "millwright-webhook." + u.namespace + ".svc", Roots: trusted}); err != nil {
			u.t.Errorf("%s: %v", why, err)
		}
	}
	first, trusted := upgrade()
	check("the certificate", first, trusted)
	second, trusted := upgrade()
	if check("after an upgrade", second, trusted); !second.Equal(first) {
		u.t.Error("an upgrade has made another certificate at once")
	}
	u.do("", "annotate", "--overwrite", "secret/millwright-webhook", "cluster.k8s.io/certificate-made=1700000000")
	third, trusted := upgrade()
	check("when it was old", third, trusted)
	if check("the one of before", first, trusted); third.Equal(first) {
		u.t.Error("an old certificate stays")
	}
}

// What is installed goes, but for the CRDs and what protects them. The next install takes them
// over.
func TestOPS5_UninstallingTheChartKeepsTheCRDs(t *testing.T) {
	u := newUser(t)
	install := []string{"install", "millwright", chartDir, "--values", "-", ofARelease}
	const values = "replicas: 1"
	if _, stderr, err := u.helm(values, install...); err == nil || !strings.Contains(stderr, "invalid ownership metadata") {
		t.Errorf("over what kubectl has applied, without --take-ownership: %v: %s: want it refused", err, stderr)
	}
	u.releaseForeign(machineCRD, func() {
		_, stderr, err := u.helm(values, append(install, "--take-ownership")...)
		if err == nil || !strings.Contains(stderr, machineCRD) || !strings.Contains(stderr, "crds.replaceForeign=true") {
			t.Errorf("over another system's CRD: %v: %s: want it refused, with what to do", err, stderr)
		}
	})
	for n, flags := range [][]string{{"--take-ownership", "--force-conflicts"}, nil} {
		if _, stderr, err := u.helm(values, append(install, flags...)...); err != nil {
			t.Fatalf("install %d: %v: %s", n, err, stderr)
		}
		u.do("", "get", "deployment", "millwright-manager")
		if _, stderr, err := u.helm("replicas: 2", "upgrade", "millwright", chartDir, "--values", "-", ofARelease); err != nil {
			t.Fatalf("upgrade: %v: %s", err, stderr)
		}
		if replicas := u.do("", "get", "deployment", "millwright-manager", "-o", "jsonpath={.spec.replicas}"); replicas != "2" {
			t.Errorf("after the upgrade it has %s replicas", replicas)
		}
		if n == 0 {
			u.checkWebhookCertificate()
		}
		if _, stderr, err := u.helm("", "uninstall", "millwright"); err != nil {
			t.Fatalf("uninstall: %v: %s", err, stderr)
		}
		if left := u.do("", "get", "deployments,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets", "-o", "name"); strings.Contains(left, "millwright") {
			t.Errorf("left: %s", left)
		}
		for _, kept := range []string{"crd/" + machineCRD, "namespace/millwright-credentials", "validatingadmissionpolicy/millwright-crd-deletion"} {
			if deleted := u.do("", "get", kept, "-o", "jsonpath={.metadata.deletionTimestamp}"); deleted != "" {
				t.Errorf("%s is being deleted since %s", kept, deleted)
			}
		}
	}
	if _, stderr, err := u.try("", "delete", "namespace", u.namespace, "--dry-run=server"); err == nil || !strings.Contains(stderr, uninstallIt) {
		t.Errorf("the release's namespace: %v: %s: want its deletion refused", err, stderr)
	}
	u.do("", "apply", "--server-side", "--force-conflicts", "-k", crdsDir) // as other tests know it
}

// releaseForeign has a CRD be another system's for as long as do runs.
func (u *user) releaseForeign(crd string, do func()) {
	u.t.Helper()
	const mark = "api-approved.kubernetes.io"
	var before struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(u.do("", "get", "crd", crd, "-o", "json")), &before); err != nil {
		u.t.Fatal(err)
	}
	u.do("", "annotate", "--overwrite", "crd", crd, mark+"=unapproved, legacy API")
	do()
	u.do("", "annotate", "--overwrite", "crd", crd, mark+"="+before.Metadata.Annotations[mark])
}
