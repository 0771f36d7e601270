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
	const complete, whole = clusterv1alpha1.ReasonNewMachineSetAvailable, 10*time.Minute + time.Second
	for _, tc := range []struct {
		why   string
		last  metav1.Time
		since time.Time
		plan  plan
		done  results
		// was is the reason that the status shows; empty for MachineSetUpdated.
		was string
		// more is what there is beyond what the status counts.
		more counts
		// wasLeftAlone: the status shows that the deployment was paused by annotation.
		paused, wasLeftAlone, noDeadline, noOldMachines bool
		want                                            string
		// hasProgressed says that the deadline starts anew, left in how long it is over.
		hasProgressed bool
		left          time.Duration
	}{
		{why: "the deadline runs", last: recent, plan: waiting, want: updated, left: 9*time.Minute + time.Second},
		{why: "it is over", last: late, plan: waiting, want: exceeded},
		{why: "it is over to the second", last: ago(10*time.Minute + time.Second), plan: waiting, want: exceeded},
		{why: "but not within it", last: ago(10 * time.Minute), plan: waiting, want: updated, left: time.Second},
		{why: "nobody was there to make progress", last: late, since: now.Add(-time.Minute), plan: waiting, want: updated, left: 9*time.Minute + time.Second},
		{why: "what was exceeded stays so", last: late, since: now, plan: waiting, was: exceeded, want: exceeded},
		{why: "until it gets on", last: late, plan: waiting, was: exceeded, more: counts{ready: 1}, want: updated, hasProgressed: true, left: whole},
		{why: "an available Machine more", last: late, plan: waiting, more: counts{available: 1}, want: updated, hasProgressed: true, left: whole},
		{why: "a Machine of the template more", last: late, plan: waiting, more: counts{present: 1, updated: 1}, want: updated, hasProgressed: true, left: whole},
		{why: "an old Machine less", last: late, plan: waiting, more: counts{present: -1}, want: updated, hasProgressed: true, left: whole},
		{why: "fewer that are ready are none", last: late, plan: waiting, more: counts{ready: -1, available: -1}, want: exceeded},
		{why: "no deadline", last: late, plan: waiting, noDeadline: true, want: updated},
		{why: "paused, it does not run", last: late, plan: plan{wait: rollout.Wait{For: rollout.Resumption}}, paused: true, want: clusterv1alpha1.ReasonDeploymentPaused},
		{why: "resumed, it starts anew", last: late, plan: waiting, was: clusterv1alpha1.ReasonDeploymentPaused, want: clusterv1alpha1.ReasonDeploymentResumed, hasProgressed: true},
		{why: "so it does when the annotation that paused it is gone", last: late, plan: waiting, wasLeftAlone: true, want: updated, hasProgressed: true, left: whole},
		{why: "users take their time to delete", last: late, plan: plan{wait: rollout.Wait{For: rollout.Request, Set: "old"}}, want: clusterv1alpha1.ReasonDeletionAwaited},
		{why: "what follows a deletion does not", last: late, plan: waiting, was: clusterv1alpha1.ReasonDeletionAwaited, want: updated, hasProgressed: true, left: whole},
		{why: "a complete rollout stays complete when Machines break", last: late, plan: waiting, was: complete, noOldMachines: true, want: complete},
		{why: "until the next begins", last: late, plan: waiting, was: complete, want: updated, hasProgressed: true, left: whole},
		{why: "nothing is waited for", last: late, plan: plan{wait: rollout.Wait{For: rollout.Nothing}}, want: complete},
		{why: "a set was made", last: late, done: results{created: "new"}, want: clusterv1alpha1.ReasonNewMachineSetCreated, hasProgressed: true},
		{why: "a set was found", last: late, done: results{found: "new"}, want: clusterv1alpha1.ReasonFoundExistingMachineSet, hasProgressed: true},
	} {
		seconds := deadline
		o := &observation{
			md: &clusterv1alpha1.MachineDeployment{}, current: &clusterv1alpha1.MachineSet{},
			counts: counts{
				present: 4 + tc.more.present, updated: 1 + tc.more.updated, ready: 3 + tc.more.ready, available: 3 + tc.more.available,
			},
			state: rollout.State{Sets: []rollout.Set{{Name: "old", Desired: 3}}},
		}
		o.md.Spec.ProgressDeadlineSeconds = &seconds
		o.md.Status = clusterv1alpha1.MachineDeploymentStatus{
			Replicas: 4, UpdatedReplicas: 1, ReadyReplicas: 3, AvailableReplicas: 3, LastProgressTime: tc.last,
		}
		if tc.was == "" {
			tc.was = updated
		}
		o.md.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionProgressing, Reason: tc.was}}
		if tc.wasLeftAlone {
			o.md.Status.Conditions = append(o.md.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue})
		}
		if tc.noDeadline {
			o.md.Spec.ProgressDeadlineSeconds = nil
		}
		if tc.noOldMachines {
			o.state.Sets = nil
		}
		o.md.Spec.Paused = tc.paused
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
