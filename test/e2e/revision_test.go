package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// plugin runs `kubectl millwright` as the user, in the user's namespace unless args name another,
// and returns what it prints.
func (u *user) plugin(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), waitLimit)
	defer cancel()
	args = append([]string{"millwright", args[0], "--namespace", u.namespace}, args[1:]...)
	command := exec.CommandContext(ctx, filepath.Join(binDir, "kubectl"), args...)
	where, err := filepath.Abs(commandDir)
	if err != nil {
		return "", err
	}
	command.Env = append(os.Environ(), "PATH="+where, "KUBECONFIG="+u.Kubeconfig()) // kubectl looks for plugins in $PATH
	out, err := command.CombinedOutput()
	return string(out), err
}

// rollout runs a command of `kubectl millwright rollout` that has to succeed.
func (u *user) rollout(args ...string) string {
	u.t.Helper()
	out, err := u.plugin(append([]string{"rollout"}, args...)...)
	if err != nil {
		u.t.Fatalf("kubectl millwright rollout %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (u *user) kubelets() string {
	var kubelets []string
	for _, m := range u.machines() {
		if m.DeletionTimestamp.IsZero() {
			kubelets = append(kubelets, m.Spec.Versions.Kubelet)
		}
	}
	slices.Sort(kubelets)
	return strings.Join(kubelets, " ")
}

// A rollout is undone, to the revision before or to a named one; what reaches machines in place
// stays as it is.
func TestROL4_HistoryAndUndo(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	spec := map[string]string{"kubelet": "1.34.1"}
	u.apply(deployment("undone", 1, spec))
	u.kubectl("patch", "machinedeployment", "undone", "--type=merge", "-p", `{"spec":{"revisionHistoryLimit":5}}`)
	u.rolledOut("undone")
	for _, kubelet := range []string{"1.34.2", "1.34.3"} {
		u.kubectl("patch", "machinedeployment", "undone", "--type=merge", "-p",
			fmt.Sprintf(`{"metadata":{"annotations":{"kubernetes.io/change-cause":"to %[1]s"}},"spec":{"template":{"spec":{"versions":{"kubelet":"%[1]s"}}}}}`, kubelet))
		u.rolledOut("undone")
	}
	u.kubectl("patch", "machinedeployment", "undone", "--type=merge", "-p", `{"spec":{"template":{"spec":{"nodeDrainTimeout":"1m"}}}}`)
	if out := u.rollout("history", "undone"); strings.Count(out, "\n") != 4 || !strings.Contains(out, "to 1.34.2") || !strings.Contains(out, "<none>") {
		t.Errorf("the history is\n%s", out)
	}
	u.rollout("undo", "undone")
	u.rolledOut("undone")
	if got := u.kubelets(); got != "1.34.2" {
		t.Errorf("after undo the kubelets are %s", got)
	}
	u.rollout("undo", "machinedeployment.cluster.k8s.io/undone", "--to-revision=1")
	u.rolledOut("undone")
	u.awaitRunning(1)
	if m := u.machine(); m.Spec.Versions.Kubelet != "1.34.1" || m.Spec.NodeDrainTimeout == nil || m.Spec.NodeDrainTimeout.Duration != time.Minute {
		t.Errorf("after undo to revision 1 the machine is %+v", m.Spec)
	}
	if out, err := u.plugin("rollout", "undo", "undone", "--to-revision=77"); err == nil || !strings.Contains(out, "no revision 77") {
		t.Errorf("undo to what is not there: %v\n%s", err, out)
	}
	if out := u.rollout("undo", "undone", "--to-revision=5"); !strings.Contains(out, "skipped") {
		t.Errorf("undo to what is current says\n%s", out)
	}
}

// Paused, a rollout waits, and scaling works; resumed, it goes on. The commands work as a plugin of
// kubectl.
func TestROL4_PauseAndResume(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("paused", 2, nil))
	u.awaitRunning(2)
	old := u.kubelets()
	u.rollout("pause", "paused")
	if out, err := u.plugin("rollout", "pause", "paused"); err == nil || !strings.Contains(out, "already paused") {
		t.Errorf("pausing it again: %v\n%s", err, out)
	}
	u.kubectl("patch", "machinedeployment", "paused", "--type=merge", "-p", `{"spec":{"replicas":3,"template":{"spec":{"versions":{"kubelet":"1.34.2"}}}}}`)
	u.awaitProgressing("paused", clusterv1alpha1.ReasonDeploymentPaused)
	u.awaitRunning(3)
	if got := u.kubelets(); got != old+" 1.34.3" {
		t.Errorf("while it is paused the kubelets are %s", got)
	}
	if out, err := u.plugin("rollout", "restart", "paused"); err == nil || !strings.Contains(out, "resume it first") {
		t.Errorf("restarting what is paused: %v\n%s", err, out)
	}
	u.rollout("resume", "paused")
	u.rollout("status", "paused")
	u.awaitRunning(3)
	if got := u.kubelets(); got != "1.34.2 1.34.2 1.34.2" {
		t.Errorf("resumed, the kubelets are %s", got)
	}
}

// A restart replaces every machine by one of the same template, within the bounds; rolloutAfter
// does when its time comes.
func TestROL4_RestartAndRolloutAfter(t *testing.T) {
	tier.Long(t, "it replaces its machines twice")
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("restarted", 2, nil))
	u.awaitRunning(2)
	seen := map[string]bool{}
	replaced := func() {
		t.Helper()
		for _, uid := range u.uids() {
			if seen[uid] {
				t.Errorf("machine uid %s was not replaced", uid)
			}
			seen[uid] = true
		}
	}
	replaced()
	peak := u.keepExtremes()
	u.rollout("restart", "restarted")
	u.rolledOut("restarted")
	u.awaitRunning(2)
	replaced()
	after := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	u.kubectl("patch", "machinedeployment", "restarted", "--type=merge", "-p", `{"spec":{"rolloutAfter":"`+after+`"}}`)
	eventually(t, "rolloutAfter to make a new revision", func(context.Context) error {
		if out := u.rollout("history", "restarted"); !strings.Contains(out, "\n3 ") {
			return errors.New(out)
		}
		return nil
	})
	u.rolledOut("restarted")
	u.awaitRunning(2)
	replaced()
	if most, least := peak(); most > 3 || least < 2 {
		t.Errorf("between %d and %d machines, want at most 3, and at least 2 available", least, most)
	}
}

// A rollout that does not get on says so, and what it waits for. The deadline is short only while
// nothing gets on: on a busy machine each step takes seconds.
func TestROL5_ProgressDeadline(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("stuck", 1, nil))
	u.rolledOut("stuck")
	patch := func(spec string) {
		u.kubectl("patch", "machinedeployment", "stuck", "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
	patch(`{"template":{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"flavor":"no-such-flavor"}}}}}}`)
	eventually(t, "the new machine to say what is missing", func(context.Context) error {
		for _, m := range u.machines() {
			if saysWhy(&m, clusterv1alpha1.ReasonDependencyNotFound, "no-such-flavor") {
				return nil
			}
		}
		return errors.New("none does")
	})
	patch(`{"progressDeadlineSeconds":2}`)
	u.kubectl("wait", "machinedeployment/stuck", "--for=condition=Progressing=False", "--timeout=60s")
	out, err := u.plugin("rollout", "status", "stuck")
	if err == nil || !strings.Contains(out, "exceeded its progress deadline: No progress for 2s: Waiting for Machines of MachineSet stuck-") {
		t.Errorf("rollout status: %v\n%s", err, out)
	}
	if events := u.kubectl("get", "events", "--field-selector=reason="+clusterv1alpha1.ReasonProgressDeadlineExceeded); strings.Count(events, "\n") != 2 {
		t.Errorf("not one event tells of it:\n%s", events)
	}
	patch(`{"progressDeadlineSeconds":600}`)
	u.rollout("undo", "stuck")
	u.rolledOut("stuck")
	u.awaitRunning(1)
}

// An old machine goes only when its replacement has been Ready for minReadySeconds.
func TestROL5_MinReadySecondsCount(t *testing.T) {
	t.Parallel()
	const seconds = 3
	u := newSharingUser(t)
	u.apply(deployment("ripe", 1, nil))
	u.awaitRunning(1)
	old := u.machine().Name
	u.kubectl("patch", "machinedeployment", "ripe", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"minReadySeconds":%d,"template":{"spec":{"versions":{"kubelet":"1.34.2"}}}}}`, seconds))
	var ready, left time.Time
	ctx, stop := context.WithTimeout(t.Context(), waitLimit)
	defer stop()
	u.eachEvent(ctx, func(m *clusterv1alpha1.Machine, _ bool) {
		switch is := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady); {
		case m.Name == old && !m.DeletionTimestamp.IsZero():
			left = m.DeletionTimestamp.Time
			stop()
		case m.Name != old && is != nil && is.Status == "True":
			ready = is.LastTransitionTime.Time
		}
	})
	// Both are whole seconds.
	if ready.IsZero() || left.Sub(ready) < (seconds-1)*time.Second {
		t.Errorf("the new machine was Ready at %s, the old one was deleted at %s", ready, left)
	}
	u.rolledOut("ripe")
}
