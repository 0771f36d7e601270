package tree

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func object(namespace, name, owner string) metav1.ObjectMeta {
	o := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(0, 0))}
	if owner != "" {
		o.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: new(true)}}
	}
	return o
}

// Sets stand from the newest to the oldest; what nobody owns stands by itself.
func TestOPS4_ATreeShowsWhoOwnsWhat(t *testing.T) {
	revision := func(ms clusterv1alpha1.MachineSet, n string) clusterv1alpha1.MachineSet {
		ms.Annotations = map[string]string{clusterv1alpha1.RevisionAnnotation: n}
		return ms
	}
	frozen := clusterv1alpha1.MachineSet{ObjectMeta: object("team", "lone", "")}
	frozen.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionFrozen, Status: metav1.ConditionTrue, Reason: "Overshoot", Message: "There are\n 9 of 3."}}
	failed := clusterv1alpha1.Machine{ObjectMeta: object("team", "web-a-1", "web-a")}
	failed.Status.Phase = clusterv1alpha1.MachinePhaseFailed
	failed.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "CreateFailed", Message: strings.Repeat("long ", 20)}}
	fleet := Fleet{
		Deployments: []clusterv1alpha1.MachineDeployment{{ObjectMeta: object("team", "web", "")}, {ObjectMeta: object("other", "db", "")}},
		Sets: []clusterv1alpha1.MachineSet{
			revision(clusterv1alpha1.MachineSet{ObjectMeta: object("team", "web-a", "web")}, "9"),
			revision(clusterv1alpha1.MachineSet{ObjectMeta: object("team", "web-b", "web")}, "10"),
			frozen,
		},
		Machines: []clusterv1alpha1.Machine{{ObjectMeta: object("team", "web-a-2", "web-a")}, failed, {ObjectMeta: object("team", "alone", "gone")}},
	}
	var out bytes.Buffer
	if err := Print(&out, Build(fleet), Options{Namespaces: true, Now: time.Unix(3600, 0)}); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   NAME                    READY     PHASE    AGE   WHY
other       MachineDeployment/db    0/0                60m
team        MachineDeployment/web   0/0                60m
team        ├─MachineSet/web-b      0/0                60m
team        └─MachineSet/web-a      0/0                60m
team          ├─Machine/web-a-1     False     Failed   60m   CreateFailed: long long long long long long long long long…
team          └─Machine/web-a-2     Unknown            60m
team        MachineSet/lone         0/0                60m   Overshoot: There are 9 of 3.
team        Machine/alone           Unknown            60m
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
