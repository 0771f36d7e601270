package apischema

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// TestKubectlShowsTheColumns compares what `kubectl get` shows of a running deployment.
func TestKubectlShowsTheColumns(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.runningDeployment()
	for golden, args := range map[string][]string{
		"short.golden":      {"get", "md,ms,ma"},
		"wide.golden":       {"get", "md,ms,ma", "-o", "wide"},
		"everything.golden": {"get", "millwright"},
	} {
		t.Run(golden, func(t *testing.T) {
			got := withoutAges(u.in(t).do("", args...))
			compare(t, filepath.Join("testdata", "columns", golden), got)
		})
	}
}

// compare compares a text with what a file says.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got), -update accepts it:\n%s", diff)
	}
}

// TestKubectlWaitSeesConditions waits for conditions as scripts do.
func TestKubectlWaitSeesConditions(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.runningDeployment()
	u.do("", "wait", "--for=condition=Ready", "ma/nodes-1", "--timeout=10s")
	u.do("", "wait", "--for=condition=Available", "md/nodes", "--timeout=10s")
	u.do("", "wait", "--for=jsonpath={.status.phase}=Running", "ma/nodes-1", "--timeout=10s")
}

// runningDeployment makes a MachineDeployment with a MachineSet and two
// Machines, one of which still waits for its quota.
func (u *user) runningDeployment() {
	u.t.Helper()
	named := func(manifest, name string) string {
		return edited(u.t, manifest, edit{"metadata.name", name})
	}
	u.do(deploymentManifest, "apply", "-f", "-")
	u.do(named(setManifest, "nodes-6f5c"), "apply", "-f", "-")
	u.do(named(machineManifest, "nodes-1"), "apply", "-f", "-")
	u.do(named(machineManifest, "nodes-2"), "apply", "-f", "-")
	u.do("", "patch", "ma/nodes-1", "--type=merge", "--patch", `{"spec":{"providerID":"fake:///1"}}`)

	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: u.namespace, Name: name}
	}
	var md clusterv1alpha1.MachineDeployment
	u.get(key("nodes"), &md)
	md.Status = clusterv1alpha1.MachineDeploymentStatus{
		Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1,
		Conditions: condition(clusterv1alpha1.ConditionAvailable, metav1.ConditionTrue, clusterv1alpha1.ReasonMinimumMachinesAvailable, ""),
	}
	u.putStatus(&md)
	var ms clusterv1alpha1.MachineSet
	u.get(key("nodes-6f5c"), &ms)
	ms.Status = clusterv1alpha1.MachineSetStatus{Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1}
	u.putStatus(&ms)
	var running, waiting clusterv1alpha1.Machine
	u.get(key("nodes-1"), &running)
	running.Status = clusterv1alpha1.MachineStatus{
		Phase:      clusterv1alpha1.MachinePhaseRunning,
		NodeRef:    &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "nodes-1"},
		Conditions: condition(clusterv1alpha1.ConditionReady, metav1.ConditionTrue, clusterv1alpha1.ReasonMachineReady, "the Node is Ready"),
	}
	u.putStatus(&running)
	u.get(key("nodes-2"), &waiting)
	waiting.Status = clusterv1alpha1.MachineStatus{
		Phase:      clusterv1alpha1.MachinePhaseProvisioning,
		Conditions: condition(clusterv1alpha1.ConditionReady, metav1.ConditionFalse, clusterv1alpha1.ReasonQuotaExceeded, "quota exceeded: 10 of 10 instances"),
	}
	u.putStatus(&waiting)
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	var conditions []metav1.Condition
	meta.SetStatusCondition(&conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	return conditions
}

var age = regexp.MustCompile(`\b[0-9]+s( |\b)`)

// withoutAges replaces the ages in a table, with the columns kept in line: a test
// is over within a minute, so an age has one digit or two.
func withoutAges(table string) string {
	return age.ReplaceAllStringFunc(table, func(found string) string {
		return "AGO" + strings.Repeat(" ", max(0, len(found)-3))
	})
}

// TestExplain asks kubectl to explain a field that is easy to get wrong.
func TestExplain(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	got := strings.Join(strings.Fields(u.do("", "explain", "md.spec.strategy.rollingUpdate.maxSurge")), " ")
	if want := "how many machines there may be beyond replicas"; !strings.Contains(got, want) {
		t.Errorf("kubectl explain does not say %q:\n%s", want, got)
	}
}

// TestEveryFieldIsExplained wants a description of every field of spec and
// status: it is all that `kubectl explain` has to show.
func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(crdsDir, "cluster.k8s.io_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("CRDs: %v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			explained(t, crd.Spec.Names.Kind, version.Schema.OpenAPIV3Schema)
		}
	}
}

func explained(t *testing.T, path string, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for name, property := range schema.Properties {
		field := path + "." + name
		// Nobody explains metadata of the object itself: the API server does.
		if property.Description == "" && (name != "metadata" || strings.Contains(path, ".")) {
			t.Errorf("%s has no description", field)
		}
		explained(t, field, &property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		explained(t, path+"[]", schema.Items.Schema)
	}
}
