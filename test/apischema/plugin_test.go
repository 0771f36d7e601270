package apischema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const plugin = binDir + "/kubectl-millwright"

// TestOPS4_ThePluginTells compares what each command of the plugin prints of a running deployment.
func TestOPS4_ThePluginTells(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ownedDeployment()
	for golden, args := range map[string]string{
		"tree.golden":      "tree",
		"tree-wide.golden": "tree nodes -o wide",
		"tree-yaml.golden": "tree md/nodes -o yaml",
		"describe.golden":  "describe ma/nodes-2",
		"history.golden":   "rollout history md/nodes",
		"top.golden":       "top --once",
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
	t.Parallel()
	u := newUser(t)
	for args, want := range map[string]string{
		"tree nowhere":           `no MachineDeployment "nowhere" in `,
		"tree machine/nodes-1":   "expected a machinedeployment",
		"tree -o table":          "wide, name, json, yaml",
		"describe md/nodes":      "expected a machine",
		"describe nowhere":       "not found",
		"drivers":                "--namespace",
		"rollout status":         "accepts 1 arg",
		"tree --context=nowhere": "nowhere",
		"tree --cluster=nowhere": "nowhere",
		"uninstall --yess":       "--yess",
		"top --interval 1ms":     "--interval: at least 100ms",
		"scale nodes":            `"replicas" not set`,
		"scale --replicas 1 no":  "not found",
	} {
		stdout, stderr, err := u.plugin(args)
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("kubectl millwright %s: %v: %s%s: want it refused, with %q", args, err, stdout, stderr, want)
		}
	}
}

// The plugin says what it is, and completes its commands as kubectl does.
func TestOPS4_ThePluginFitsIntoKubectl(t *testing.T) {
	t.Parallel()
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

// What takes long shows how it gets on, and an interrupt ends it.
func TestOPS4_LongCommandsFollowUntilTheyAreInterrupted(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ownedDeployment()
	top := u.follow("top", "--interval", "100ms")
	top.await("team/nodes: 1 of 2 available, 2 updated, 0 outdated; 1 Provisioning; ? left")
	var md clusterv1alpha1.MachineDeployment
	u.get(types.NamespacedName{Namespace: u.namespace, Name: "nodes"}, &md)
	md.Status.AvailableReplicas = 2
	u.putStatus(&md)
	top.await("team/nodes: 2 of 2 available")
	if err := top.interrupt(); err != nil {
		t.Errorf("top: %v", err)
	}
	scale := u.follow("scale", "nodes", "--replicas", "3", "--watch")
	scale.await(`machinedeployment "nodes" scaled`)
	scale.await("Waiting for the change to be observed")
	if err := scale.interrupt(); err == nil || !strings.Contains(scale.said(), "interrupted, and the rollout goes on") {
		t.Errorf("scale: %v: %s", err, scale.said())
	}
}

// followed is a command that runs until it is interrupted.
type followed struct {
	user    *user
	command *exec.Cmd
	out     lockedBuffer
}

func (u *user) follow(args ...string) *followed {
	u.t.Helper()
	// It outlives the test's context, so that a cleanup can interrupt it.
	f := &followed{user: u, command: exec.CommandContext(context.WithoutCancel(u.t.Context()), plugin, append(args, "--namespace", u.namespace)...)}
	f.command.Env = []string{"HOME=" + u.server.home, "KUBECONFIG=" + filepath.Join(u.server.home, "kubeconfig")}
	f.command.Stdout, f.command.Stderr = &f.out, &f.out
	if err := f.command.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = f.command.Process.Kill() }) // it may have ended
	return f
}

// await waits until the command has said that.
func (f *followed) await(text string) {
	f.user.t.Helper()
	err := wait.PollUntilContextTimeout(f.user.t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return strings.Contains(f.said(), text), nil
	})
	if err != nil {
		f.user.t.Fatalf("%v: %q is not in\n%s", f.command.Args, text, f.said())
	}
}

func (f *followed) said() string { return strings.ReplaceAll(f.out.String(), f.user.namespace, "team") }

func (f *followed) interrupt() error {
	return errors.Join(f.command.Process.Signal(os.Interrupt), f.command.Wait())
}

// lockedBuffer is read while a command writes to it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
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

var (
	moment = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`)
	clock  = regexp.MustCompile(`\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b`)
)

// withoutTimes replaces moments and ages, with the columns kept in line.
func withoutTimes(text string) string {
	return withoutAges(clock.ReplaceAllString(moment.ReplaceAllString(text, "YYYY-MM-DDThh:mm:ssZ"), "hh:mm:ss"))
}
