package machinedeployment_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// A set whose template becomes the current one again gets a new revision and keeps the former in
// its history.
func TestROL4_ASetThatIsUsedAgainKeepsItsFormerRevisions(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	because := func(cause string, change func(*clusterv1alpha1.MachineDeployment)) func(*clusterv1alpha1.MachineDeployment) {
		return func(md *clusterv1alpha1.MachineDeployment) {
			metav1.SetMetaDataAnnotation(&md.ObjectMeta, "kubernetes.io/change-cause", cause)
			change(md)
		}
	}
	md := newDeployment(t, c, 1, because("first", kubelet("1.36.0")))
	isComplete(t, c, md, 1)
	first := sets(t, c)[0].Name
	for _, version := range []string{"1.36.1", "1.36.0", "1.36.1", "1.36.0"} {
		controllertest.Patch(t, c, md, because("to "+version, kubelet(version)))
		isComplete(t, c, md, 1)
	}
	s := sets(t, c)
	if len(s) != 2 || s[1].Name != first || revision(&s[1]) != 5 || revision(md) != 5 {
		t.Fatalf("sets: %v", tellSets(t, c))
	}
	if got := s[1].Annotations[clusterv1alpha1.RevisionHistoryAnnotation]; got != "1,3" {
		t.Errorf("former revisions are %q, want 1,3", got)
	}
	if got := s[1].Annotations["kubernetes.io/change-cause"]; got != "to 1.36.0" {
		t.Errorf("the cause is %q", got)
	}
	if got := s[0].Annotations["kubernetes.io/change-cause"]; got != "to 1.36.1" {
		t.Errorf("the old set's cause is %q", got)
	}
}

// Once rolloutAfter has passed, Machines that were made before are replaced, once.
func TestROL4_MachinesOfBeforeRolloutAfterAreReplacedOnce(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	first := sets(t, c)[0]
	audit := c.Audit(t)
	// It has to wake itself: nothing else happens.
	after := metav1.NewTime(time.Now().Add(2 * time.Second))
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.RolloutAfter = &after })
	isComplete(t, c, md, 2)
	if n := len(sets(t, c)); n != 1 && time.Now().Before(after.Time) {
		t.Errorf("there are %d sets too early", n)
	}
	holding(t, c, 0, 2)
	isComplete(t, c, md, 2)
	s := sets(t, c)
	if s[0].Name != first.Name || *s[0].Spec.Replicas != 0 || revision(md) != 2 || audit.Made() != 4 {
		t.Errorf("sets: %v; %d Machines were made", tellSets(t, c), audit.Made())
	}
	// Without it, or with one that has passed before the set was made, the newest of the same
	// template stays.
	for _, passed := range []*metav1.Time{nil, {Time: first.CreationTimestamp.Add(-time.Hour)}} {
		controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.RolloutAfter = passed })
		isComplete(t, c, md, 2)
	}
	if n := len(sets(t, c)); n != 2 || audit.Made() != 4 {
		t.Errorf("%d sets, %d Machines were made", n, audit.Made())
	}
	// In the second in which a set was made, one that does not say that it was made for it counts
	// as older.
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.RolloutAfter = &sets(t, c)[1].CreationTimestamp })
	isComplete(t, c, md, 2)
}
