package machinedeployment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/rollout"
)

func TestROL5_TheDeadlineRunsWhileARolloutDoesNotGetOn(t *testing.T) {
	const deadline = int32(600)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	late, recent := ago(time.Hour), ago(time.Minute)
	waiting := plan{wait: rollout.Wait{For: rollout.Availability, Set: "new"}}
	const updated, exceeded = clusterv1alpha1.ReasonMachineSetUpdated, clusterv1alpha1.ReasonProgressDeadlineExceeded
	was := func(reason string) func(*observation) {
		return func(o *observation) {
			o.md.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionProgressing, Reason: reason}}
		}
	}
	for _, tc := range []struct {
		why    string
		last   metav1.Time
		since  time.Time
		plan   plan
		done   results
		change []func(*observation)
		want   string
		// hasProgressed says that the deadline starts anew, left in how long it is over.
		hasProgressed bool
		left          time.Duration
	}{
		{why: "the deadline runs", last: recent, plan: waiting, want: updated, left: 9*time.Minute + time.Second},
		{why: "it is over", last: late, plan: waiting, want: exceeded},
		{why: "it is over to the second", last: ago(10*time.Minute + time.Second), plan: waiting, want: exceeded},
		{why: "but not within it", last: ago(10 * time.Minute), plan: waiting, want: updated, left: time.Second},
		{why: "nobody was there to make progress", last: late, since: now.Add(-time.Minute), plan: waiting, want: updated, left: 9*time.Minute + time.Second},
		{why: "what was exceeded stays so", last: late, since: now, plan: waiting, change: []func(*observation){was(exceeded)}, want: exceeded},
		{why: "until it gets on", last: late, plan: waiting, change: []func(*observation){was(exceeded), func(o *observation) { o.counts.ready++ }}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "an available Machine more", last: late, plan: waiting, change: []func(*observation){func(o *observation) { o.counts.available++ }}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "a Machine of the template more", last: late, plan: waiting, change: []func(*observation){func(o *observation) { o.counts.updated++; o.counts.present++ }}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "an old Machine less", last: late, plan: waiting, change: []func(*observation){func(o *observation) { o.counts.present-- }}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "fewer that are ready are none", last: late, plan: waiting, change: []func(*observation){func(o *observation) { o.counts.ready--; o.counts.available-- }}, want: exceeded},
		{why: "no deadline", last: late, plan: waiting, change: []func(*observation){func(o *observation) { o.md.Spec.ProgressDeadlineSeconds = nil }}, want: updated},
		{why: "paused, it does not run", last: late, plan: plan{wait: rollout.Wait{For: rollout.Resumption}}, change: []func(*observation){func(o *observation) { o.md.Spec.Paused = true }}, want: clusterv1alpha1.ReasonDeploymentPaused},
		{why: "resumed, it starts anew", last: late, plan: waiting, change: []func(*observation){was(clusterv1alpha1.ReasonDeploymentPaused)}, want: clusterv1alpha1.ReasonDeploymentResumed, hasProgressed: true},
		{why: "so it does when the brake is released", last: late, plan: waiting, change: []func(*observation){func(o *observation) {
			o.md.Status.Conditions = append(o.md.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue})
		}}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "users take their time to delete", last: late, plan: plan{wait: rollout.Wait{For: rollout.Request, Set: "old"}}, want: clusterv1alpha1.ReasonDeletionAwaited},
		{why: "what follows a deletion does not", last: late, plan: waiting, change: []func(*observation){was(clusterv1alpha1.ReasonDeletionAwaited)}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "a complete rollout stays complete when Machines break", last: late, plan: waiting, change: []func(*observation){was(clusterv1alpha1.ReasonNewMachineSetAvailable), func(o *observation) {
			o.state.Sets = nil
		}}, want: clusterv1alpha1.ReasonNewMachineSetAvailable},
		{why: "until the next begins", last: late, plan: waiting, change: []func(*observation){was(clusterv1alpha1.ReasonNewMachineSetAvailable)}, want: updated, hasProgressed: true, left: 10*time.Minute + time.Second},
		{why: "nothing is waited for", last: late, plan: plan{wait: rollout.Wait{For: rollout.Nothing}}, want: clusterv1alpha1.ReasonNewMachineSetAvailable},
		{why: "a set was made", last: late, done: results{created: "new"}, want: clusterv1alpha1.ReasonNewMachineSetCreated, hasProgressed: true},
		{why: "a set was found", last: late, done: results{found: "new"}, want: clusterv1alpha1.ReasonFoundExistingMachineSet, hasProgressed: true},
	} {
		seconds := deadline
		o := &observation{
			md: &clusterv1alpha1.MachineDeployment{}, current: &clusterv1alpha1.MachineSet{},
			counts: counts{present: 4, updated: 1, ready: 3, available: 3},
			state:  rollout.State{Sets: []rollout.Set{{Name: "old", Desired: 3}}},
		}
		o.md.Spec.ProgressDeadlineSeconds = &seconds
		o.md.Status = clusterv1alpha1.MachineDeploymentStatus{
			Replicas: 4, UpdatedReplicas: 1, ReadyReplicas: 3, AvailableReplicas: 3, LastProgressTime: tc.last,
		}
		was(updated)(o)
		for _, change := range tc.change {
			change(o)
		}
		o.now, o.started = now, tc.since
		got := newProgress(o, &tc.plan, &tc.done)
		want := tc.last.Time
		if tc.hasProgressed {
			want = now
		}
		if got.condition.Reason != tc.want || !got.last.Time.Equal(want) || got.left != tc.left {
			t.Errorf("%s: %s, last %s, over in %s; want %s, %s, %s", tc.why, got.condition.Reason, got.last.Time, got.left, tc.want, want, tc.left)
		}
	}
}

func TestROL4_TheHistoryOfRevisionsIsBounded(t *testing.T) {
	set := &clusterv1alpha1.MachineSet{}
	for revision := int64(1); revision <= 1000; revision++ {
		setRevision(set, revision)
	}
	history := set.Annotations[clusterv1alpha1.RevisionHistoryAnnotation]
	if len(history) > maxHistory || len(history) < maxHistory-4 || history[len(history)-8:] != ",998,999" {
		t.Errorf("%d bytes: %s", len(history), history)
	}
}
