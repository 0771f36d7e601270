package machinedeployment

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/rollout"
)

// changeCause is an annotation in which users say why they changed a template; `rollout history`
// shows it, as kubectl does that of a Deployment.
const changeCause = "kubernetes.io/change-cause"

// syncMetadata puts on a set what it has from the deployment and may change without replacing a
// machine. cluster-autoscaler wants its label and its annotation both or not at all. A change of
// maxSurge alone scales no set, but sets replace Machines within it.
func (o *observation) syncMetadata(set *clusterv1alpha1.MachineSet, revision int64, part rollout.Part) {
	metav1.SetMetaDataLabel(&set.ObjectMeta, clusterv1alpha1.DeploymentNameLabel, o.md.Name)
	revise(set, revision)
	if p, ok := plannedSize(set); ok && p.Replicas == o.state.Replicas {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.MaxReplicasAnnotation, o.maxReplicas())
	}
	o.annotateRollout(set, part)
	set.Spec.MinReadySeconds = o.md.Spec.MinReadySeconds
	if rolling := o.md.Spec.Strategy.RollingUpdate; rolling != nil && rolling.DeletePolicy != "" {
		set.Spec.DeletePolicy = rolling.DeletePolicy
	}
}

// annotateRollout tells the set's Machines what a rollout wants of their Nodes.
func (o *observation) annotateRollout(set *clusterv1alpha1.MachineSet, part rollout.Part) {
	delete(set.Annotations, clusterv1alpha1.RolloutAnnotation)
	delete(set.Annotations, clusterv1alpha1.HoldScaleDownAnnotation)
	if part != rollout.NoPart {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.RolloutAnnotation, string(part))
	}
	if (part == rollout.Outdated || part == rollout.Current) && annotations.IsAutoscaled(o.md) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.HoldScaleDownAnnotation, "true")
	}
}

// update gives the set of the deployment's template the part of it that reaches Machines in place.
// Old sets keep theirs: it is what their Machines were made from.
func (o *observation) update(set *clusterv1alpha1.MachineSet) {
	from, to := &o.md.Spec.Template, &set.Spec.Template
	machinetemplate.CopyInPlace(&to.Spec, &from.Spec)
	to.Annotations = maps.Clone(from.Annotations)
	if cause, ok := o.md.Annotations[changeCause]; ok {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, changeCause, cause)
	}
	if wanted, ok := labelsFor(set, from.Labels); ok {
		to.Labels = wanted
		ownership.SyncMetadata(set, wanted, nil)
	}
}

// labelsFor returns the labels that the set's Machines are to have if the template has these: what
// the set selects by is the set's own. It is false if the set, which somebody else may have made,
// would not find such Machines.
func labelsFor(set *clusterv1alpha1.MachineSet, template map[string]string) (map[string]string, bool) {
	wanted := map[string]string{}
	maps.Copy(wanted, template)
	delete(wanted, clusterv1alpha1.MachineTemplateHashLabel)
	maps.Copy(wanted, set.Spec.Selector.MatchLabels)
	selector, err := set.Spec.Selector.AsSelector()
	return wanted, err == nil && selector.Matches(labels.Set(wanted))
}
