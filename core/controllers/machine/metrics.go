package machine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/core/metrics"
)

// measures are the controller's metrics. None has a series for a single Machine.
type measures struct {
	startup, join, drain, deletion prometheus.Histogram
	warningsTotal                  *prometheus.CounterVec
}

// durations from a second to two hours.
var durations = prometheus.ExponentialBucketsRange(1, 7200, 14)

// newMeasures registers the metrics, or takes those that are registered already.
func newMeasures(registry prometheus.Registerer) (*measures, error) {
	all := &metrics.Registration{Registry: registry}
	lasting := func(what, help string) prometheus.Histogram {
		return metrics.Register(all, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "millwright_machine_" + what + "_duration_seconds", Buckets: durations, Help: help,
		}))
	}
	m := &measures{
		startup:  lasting("startup", "Time from the creation of a Machine until it first was Running."),
		join:     lasting("join", "Time from when a Machine's VM ran until the Machine first was Running."),
		drain:    lasting("drain", "Time that the drain of a Machine's Node took, however it ended, unless it was skipped."),
		deletion: lasting("deletion", "Time from the deletion of a Machine until nothing of it was left."),
		warningsTotal: metrics.Register(all, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_machine_warnings_total",
			Help: "Things that got in a Machine's way, by the reason in its condition; Other for a driver's own words.",
		}, []string{"reason"})),
	}
	return m, all.Err
}

// recordStatus counts a Machine that has become Running, or is drained: a drain that was skipped
// does not count. A Machine that was Unknown or Updating has been Running before.
func (m *measures) recordStatus(machine *clusterv1alpha1.Machine, was *clusterv1alpha1.MachineStatus, now time.Time) {
	is := &machine.Status
	ranBefore := was.Phase == is.Phase || was.Phase == clusterv1alpha1.MachinePhaseUnknown || was.Phase == clusterv1alpha1.MachinePhaseUpdating
	if is.Phase == clusterv1alpha1.MachinePhaseRunning && !ranBefore {
		m.startup.Observe(now.Sub(machine.CreationTimestamp.Time).Seconds())
		if runs := apimeta.FindStatusCondition(is.Conditions, clusterv1alpha1.ConditionInstanceReady); runs != nil {
			m.join.Observe(now.Sub(runs.LastTransitionTime.Time).Seconds())
		}
	}
	began, drained := apimeta.FindStatusCondition(was.Conditions, clusterv1alpha1.ConditionDrained), lifecycle.Status(*is)
	if machine.DeletionTimestamp == nil || !drained.IsDrainOver() || drained.IsDrainSkipped() || lifecycle.Status(*was).IsDrainOver() {
		return
	}
	since := machine.DeletionTimestamp.Time
	if began != nil {
		since = began.LastTransitionTime.Time
	}
	m.drain.Observe(now.Sub(since).Seconds())
}

// recordRelease counts a Machine that is over.
func (m *measures) recordRelease(machine *clusterv1alpha1.Machine, now time.Time) {
	if machine.DeletionTimestamp != nil {
		m.deletion.Observe(now.Sub(machine.DeletionTimestamp.Time).Seconds())
	}
}

// countWarning counts a warning. A reason may be a driver's own word, of which there is no end:
// those count as one.
func (m *measures) countWarning(reason string) {
	if !warnings[reason] {
		reason = "Other"
	}
	m.warningsTotal.WithLabelValues(reason).Inc()
}

// recordEvents emits a step's events and counts its warnings. Their texts are lifecycle's, and
// stable.
func (r *reconciler) recordEvents(s *machineScope, step lifecycle.Step) {
	for _, e := range step.Events {
		severity := corev1.EventTypeNormal
		if e.Warning {
			severity = corev1.EventTypeWarning
			r.measures.countWarning(e.Reason)
		}
		action := string(step.Do)
		if step.Do == lifecycle.Nothing {
			action = "Observe"
		}
		r.events.Eventf(s.machine, nil, severity, e.Reason, action, "%s", messages.EventNote(e.Message))
	}
}

// warnings are the documented reasons of things that get in a Machine's way.
var warnings = map[string]bool{
	clusterv1alpha1.ReasonKubeletTooOld:                true,
	clusterv1alpha1.ReasonBootstrapInvalid:             true,
	clusterv1alpha1.ReasonInstanceStopped:              true,
	clusterv1alpha1.ReasonInstanceFailed:               true,
	clusterv1alpha1.ReasonInstanceMissing:              true,
	clusterv1alpha1.ReasonDriverNotFound:               true,
	clusterv1alpha1.ReasonMachineClassNotFound:         true,
	clusterv1alpha1.ReasonClusterNotFound:              true,
	clusterv1alpha1.ReasonReferenceUnresolved:          true,
	clusterv1alpha1.ReasonSpecInvalid:                  true,
	clusterv1alpha1.ReasonRequestTooLarge:              true,
	clusterv1alpha1.ReasonDependencyNotFound:           true,
	clusterv1alpha1.ReasonSpecConflict:                 true,
	clusterv1alpha1.ReasonNameTaken:                    true,
	clusterv1alpha1.ReasonCredentialsInvalid:           true,
	clusterv1alpha1.ReasonPermissionMissing:            true,
	clusterv1alpha1.ReasonQuotaExceeded:                true,
	clusterv1alpha1.ReasonCapacityUnavailable:          true,
	clusterv1alpha1.ReasonRateLimited:                  true,
	clusterv1alpha1.ReasonDeletionProtected:            true,
	clusterv1alpha1.ReasonVolumesAttached:              true,
	clusterv1alpha1.ReasonAccountChanged:               true,
	clusterv1alpha1.ReasonStaleEpoch:                   true,
	clusterv1alpha1.ReasonOperationPending:             true,
	clusterv1alpha1.ReasonProviderInternal:             true,
	clusterv1alpha1.ReasonDataLoss:                     true,
	clusterv1alpha1.ReasonNodeMissing:                  true,
	clusterv1alpha1.ReasonNodeConflict:                 true,
	clusterv1alpha1.ReasonProviderIDUnknown:            true,
	clusterv1alpha1.ReasonJoinTimeout:                  true,
	clusterv1alpha1.ReasonTokenMissing:                 true,
	clusterv1alpha1.ReasonBlockedByPodDisruptionBudget: true,
	clusterv1alpha1.ReasonDrainTimedOut:                true,
	clusterv1alpha1.ReasonDrainSkipped:                 true,
	clusterv1alpha1.ReasonVolumeDetachTimedOut:         true,
	clusterv1alpha1.ReasonVolumeWaitSkipped:            true,
}
