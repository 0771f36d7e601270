package healthcheck

import (
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/histories"
)

func TestMain(m *testing.M) { os.Exit(histories.Run(m)) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bad is a condition that is unhealthy after a timeout.
func bad(typ string, status metav1.ConditionStatus, timeout time.Duration) clusterv1alpha1.UnhealthyCondition {
	return clusterv1alpha1.UnhealthyCondition{Type: typ, Status: status, Timeout: metav1.Duration{Duration: timeout}}
}

// notReady is a check of all Machines: their Nodes must not be silent for so long.
func notReady(name string, timeout time.Duration) Check {
	return Check{
		Name: name, Selector: labels.Everything(),
		NodeConditions: []clusterv1alpha1.UnhealthyCondition{bad("Ready", metav1.ConditionUnknown, timeout)},
	}
}

// running is a Machine of a set that works.
func running(uid string) Machine {
	return Machine{Name: uid, UID: uid, CameUp: true, HasNode: true, HasSet: true, RunsSince: start}
}

// silent is one whose Node fell silent at that time.
func silent(uid string, since time.Time) Machine {
	m := running(uid)
	m.NotReady, m.NodeConditions = true, []Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Since: since}}
	return m
}
