package apischema

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const plugin = binDir + "/kubectl-millwright"

// TestOPS4_ThePluginTells compares what each command of the plugin prints of a running deployment.
func TestOPS4_ThePluginTells(t *testing.T) {
	u := newUser(t)
	u.ownedDeployment()
	for golden, args := range map[string]string{
		"tree.golden":      "tree",
		"tree-wide.golden": "tree nodes -o wide",
		"tree-yaml.golden": "tree md/nodes -o yaml",
		"describe.golden":  "describe ma/nodes-2",
		"history.golden":   "rollout history md/nodes",
	} {
		t.Run(golden, func(t *testing.T) {
			stdout, stderr, err := u.in(t).plugin(args)
			if err != nil {
				t.Fatalf("kubectl millwright %s: %v: %s", args, err, stderr)
			}
			got := withoutTimes(strings.ReplaceAll(stdout, u.namespace, "team"))
			compare(t, filepath.Join("testdata", "plugin", golden), got)
		})
	}
}

// Wrong arguments are told with what to write instead.
func TestOPS4_ThePluginNamesMistakes(t *testing.T) {
	u := newUser(t)
	for args, want := range map[string]string{
		"tree nowhere":           `no MachineDeployment "nowhere" in `,
		"tree machine/nodes-1":   "expected a machinedeployment",
		"tree -o table":          "wide, json, yaml",
		"describe md/nodes":      "expected a machine",
		"describe nowhere":       "not found",
		"drivers":                "--namespace",
		"rollout status":         "accepts 1 arg",
		"tree --context=nowhere": "nowhere",
		"tree --cluster=nowhere": "nowhere",
		"uninstall --yess":       "--yess",
	} {
		stdout, stderr, err := u.plugin(args)
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("kubectl millwright %s: %v: %s%s: want it refused, with %q", args, err, stdout, stderr, want)
		}
	}
}

// The plugin says what it is, and completes its commands as kubectl does.
func TestOPS4_ThePluginFitsIntoKubectl(t *testing.T) {
	u := newUser(t)
	for args, want := range map[string]string{
		"version":         "kubectl-millwright ",
		"version -o json": `"version": `,
		"--version":       "kubectl millwright version",
		"--help":          "kubectl millwright [command]",
		"__complete tr":   "tree\t",
		"completion bash": "__start_kubectl-millwright",
	} {
		stdout, stderr, err := u.run(plugin, "", strings.Fields(args)...)
		if err != nil || !strings.Contains(stdout, want) {
			t.Errorf("kubectl millwright %s: %v: %s%s: want %q", args, err, stdout, stderr, want)
		}
	}
}

// plugin runs the plugin as kubectl does, in the user's namespace.
func (u *user) plugin(args string) (stdout, stderr string, err error) {
	return u.run(plugin, "", append(strings.Fields(args), "--namespace", u.namespace)...)
}

// ownedDeployment is runningDeployment whose objects know their owners, with an Event.
func (u *user) ownedDeployment() {
	u.t.Helper()
	u.runningDeployment()
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: u.namespace, Name: name}
	}
	var md clusterv1alpha1.MachineDeployment
	u.get(key("nodes"), &md)
	u.owned("ms/nodes-6f5c", "MachineDeployment", &md.ObjectMeta)
	u.do("", "annotate", "ms/nodes-6f5c", clusterv1alpha1.RevisionAnnotation+"=1")
	var ms clusterv1alpha1.MachineSet
	u.get(key("nodes-6f5c"), &ms)
	u.owned("ma/nodes-1", "MachineSet", &ms.ObjectMeta)
	u.owned("ma/nodes-2", "MachineSet", &ms.ObjectMeta)
	var waiting clusterv1alpha1.Machine
	u.get(key("nodes-2"), &waiting)
	created := waiting.CreationTimestamp
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: u.namespace, Name: "nodes-2.1"},
		EventTime:           metav1.NewMicroTime(created.Time),
		Series:              &eventsv1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(created.Time)},
		Type:                corev1.EventTypeWarning,
		Action:              "CreateInstance",
		Reason:              clusterv1alpha1.ReasonQuotaExceeded,
		Note:                "quota exceeded: 10 of 10 instances\nReqID: req-1",
		ReportingController: "millwright", ReportingInstance: "millwright-0",
		Regarding: corev1.ObjectReference{
			APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: u.namespace, Name: "nodes-2", UID: waiting.UID,
		},
	}
	if err := u.server.client.Create(u.t.Context(), event); err != nil {
		u.t.Fatal(err)
	}
}

// owned gives an object an owner.
func (u *user) owned(object, kind string, owner *metav1.ObjectMeta) {
	u.t.Helper()
	u.do("", "patch", object, "--type=merge", "--patch", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]}}`,
		clusterv1alpha1.GroupVersion.String(), kind, owner.Name, owner.UID))
}

var moment = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`)

// withoutTimes replaces moments and ages, with the columns kept in line.
func withoutTimes(text string) string {
	return withoutAges(moment.ReplaceAllString(text, "YYYY-MM-DDThh:mm:ssZ"))
}
