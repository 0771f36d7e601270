package machinehealthcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/healthcheck"
	"github.com/millwright-dev/millwright/core/ownership"
)

// observation is a namespace. Its objects are the cache's own: for reading only.
type observation struct {
	namespace string
	checks    []clusterv1alpha1.MachineHealthCheck
	// invalid is why a check selects nothing, by its name.
	invalid  map[string]error
	machines []*clusterv1alpha1.Machine
	state    healthcheck.State
}

// observe reads the checks and Machines of a namespace, and the Nodes of these.
func (r *reconciler) observe(ctx context.Context, namespace string) (*observation, error) {
	o := &observation{namespace: namespace, invalid: map[string]error{}}
	var checks clusterv1alpha1.MachineHealthCheckList
	if err := r.client.List(ctx, &checks, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list MachineHealthChecks: %w", err)
	}
	machines, err := r.machines.In(ctx, namespace)
	if err != nil {
		return nil, err
	}
	o.checks, o.machines = checks.Items, machines
	// The order decides which of several checks is named.
	slices.SortFunc(o.checks, func(a, b clusterv1alpha1.MachineHealthCheck) int { return strings.Compare(a.Name, b.Name) })
	o.state = healthcheck.State{Memory: r.memories[namespace]}
	o.state.Clock.Reading, o.state.Clock.Runs = r.Clocks.Cluster()
	for i := range o.checks {
		check, err := checkOf(&o.checks[i])
		if err != nil {
			o.invalid[check.Name] = err
			check.Selector = labels.Nothing()
		}
		o.state.Checks = append(o.state.Checks, check)
	}
	if r.DefaultTimeout > 0 {
		o.state.Checks = append(o.state.Checks, defaultCheck(r.DefaultTimeout))
	}
	o.state.Machines = make([]healthcheck.Machine, 0, len(o.machines))
	for _, m := range o.machines {
		facts := factsOf(m)
		facts.Blind = facts.Blind || !r.Clocks.DriverRuns(providerOf(m))
		if facts.NodeConditions, err = r.nodeConditions(ctx, m); err != nil {
			return nil, err
		}
		o.state.Machines = append(o.state.Machines, facts)
	}
	return o, nil
}

// checkOf is a check as it is decided by. The error says which field cannot be read.
func checkOf(c *clusterv1alpha1.MachineHealthCheck) (healthcheck.Check, error) {
	check := healthcheck.Check{
		Name:           c.Name,
		NodeConditions: c.Spec.UnhealthyNodeConditions, MachineConditions: c.Spec.UnhealthyMachineConditions,
		StartupTimeout: ptr.Deref(c.Spec.NodeStartupTimeout, metav1.Duration{}).Duration,
		MaxUnhealthy:   c.Spec.MaxUnhealthy,
	}
	if c.Spec.UnhealthyRange != "" {
		check.Range = &healthcheck.Range{}
		if _, err := fmt.Sscanf(c.Spec.UnhealthyRange, "[%d-%d]", &check.Range.Least, &check.Range.Most); err != nil {
			return check, fmt.Errorf("spec.unhealthyRange must be such as [1-3]: %w", err)
		}
	}
	var err error
	if check.Selector, err = c.Spec.Selector.AsSelector(); err != nil {
		return check, fmt.Errorf("spec.selector: %w", err)
	}
	return check, nil
}

// defaultCheck is for Machines that no MachineHealthCheck selects: their Nodes have to be Ready.
func defaultCheck(timeout time.Duration) healthcheck.Check {
	c := healthcheck.Check{Default: true, Selector: labels.Everything()}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		c.NodeConditions = append(c.NodeConditions, clusterv1alpha1.UnhealthyCondition{
			Type: string(corev1.NodeReady), Status: status, Timeout: metav1.Duration{Duration: timeout},
		})
	}
	return c
}

// factsOf is what counts of a Machine, but for its Node.
func factsOf(m *clusterv1alpha1.Machine) healthcheck.Machine {
	signs := health.SignsOf(m)
	isNodeReady := apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady)
	hasUnknownNode := nodeReason(m) == clusterv1alpha1.ReasonProviderIDUnknown // its replacement would have such a one, too
	templated := slices.Contains(ownership.ReadManaged(m).Annotations, clusterv1alpha1.RemediateMachineAnnotation)
	facts := healthcheck.Machine{
		Name: m.Name, UID: string(m.UID), Labels: m.Labels,
		Ignored:  signs.Deleting || signs.Paused || signs.Foreign,
		Failed:   health.HasFailed(m),
		Blind:    signs.DriverAway || health.InstanceReason(m) == clusterv1alpha1.ReasonDataLoss,
		CameUp:   signs.CameUp,
		NotReady: !isNodeReady,
		HasNode:  m.Status.NodeRef != nil || isNodeReady || hasUnknownNode,
		Found:    apimeta.IsStatusConditionFalse(m.Status.Conditions, clusterv1alpha1.ConditionHealthCheckSucceeded),
		HasSet:   ownership.ControllerOf(m, clusterv1alpha1.MachineSetKind) != nil,
		// A template that asks for it is not obeyed: each replacement would be replaced at once.
		Requested: annotations.IsOn(m, clusterv1alpha1.RemediateMachineAnnotation) && !templated,
	}
	for _, keeps := range []string{clusterv1alpha1.SkipRemediationAnnotation, clusterv1alpha1.PreserveMachineAnnotation} {
		if annotations.IsOn(m, keeps) {
			facts.KeptBy = keeps
		}
	}
	facts.MachineConditions = make([]healthcheck.Condition, 0, len(m.Status.Conditions))
	for _, c := range m.Status.Conditions {
		facts.MachineConditions = append(facts.MachineConditions, healthcheck.Condition{Type: c.Type, Status: c.Status, Since: c.LastTransitionTime.Time})
		if c.Type == clusterv1alpha1.ConditionInstanceReady && c.Status == metav1.ConditionTrue {
			facts.RunsSince = c.LastTransitionTime.Time
		}
	}
	return facts
}

// providerOf names the driver of the Machine.
func providerOf(m *clusterv1alpha1.Machine) string {
	if applied := m.Status.ProviderSpec; applied != nil {
		return applied.CloudProvider
	}
	return m.Spec.ProviderSpec.Value.CloudProvider
}

// nodeConditions are those of the Machine's Node; none where there is none.
func (r *reconciler) nodeConditions(ctx context.Context, m *clusterv1alpha1.Machine) ([]healthcheck.Condition, error) {
	if m.Status.NodeRef == nil || r.nodes == nil {
		return nil, nil
	}
	node := &corev1.Node{}
	err := r.nodes.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && node.Annotations[clusterv1alpha1.NodeMachineAnnotation] != m.Namespace+"/"+m.Name {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Node %s: %w", m.Status.NodeRef.Name, err)
	}
	conditions := make([]healthcheck.Condition, 0, len(node.Status.Conditions))
	for _, c := range node.Status.Conditions {
		conditions = append(conditions, healthcheck.Condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Since: c.LastTransitionTime.Time,
		})
	}
	return conditions, nil
}
