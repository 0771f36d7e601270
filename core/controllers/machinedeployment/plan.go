package machinedeployment

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/rollout"
)

const (
	// maxName is how long a set's name may be.
	maxName = 63
	// hashBytes of a template's hash are used in names.
	hashBytes = 5
	// maxHistory is how long, in bytes, the list of a set's former revisions may get. A Deployment
	// of apps/v1 bounds its own likewise.
	maxHistory = 2000
	// changeCause is an annotation in which users say why they changed a template. `rollout
	// history` shows it, as kubectl does that of a Deployment.
	changeCause = "kubernetes.io/change-cause"
)

// plan is all that is to be done about the sets of a deployment. The zero value is nothing.
type plan struct {
	// wait is what the rollout waits for; hasSteps is true if it goes on instead.
	wait     rollout.Wait
	hasSteps bool
	// edits are the sets to change.
	edits []edit
	// create is the set to make for the template, without Machines, and createReplicas the size
	// that it gets then; nil if it is there.
	create         *clusterv1alpha1.MachineSet
	createReplicas int32
	// remove are the empty sets that history does not keep.
	remove []*clusterv1alpha1.MachineSet
	// found is the set of before that is used again; empty if none is.
	found string
	// revision is that of the template's set.
	revision int64
	// requeue is when to look again; 0 if only an event needs that.
	requeue time.Duration
}

// edit is a change of a set, in one write.
type edit struct {
	from, to *clusterv1alpha1.MachineSet
	reason   rollout.Reason
}

// newPlan decides what is to be done. It reads nothing but the observation, and changes nothing.
func newPlan(o *observation) plan {
	if o.paused {
		return plan{requeue: o.next}
	}
	p := plan{revision: o.newRevision(), requeue: o.next}
	var actions []rollout.Action
	actions, p.wait = rollout.Plan(o.state)
	p.hasSteps = len(actions) > 0
	p.edits = o.edits(actions)
	for _, a := range actions {
		switch a := a.(type) {
		case rollout.CreateSet:
			p.create, p.createReplicas = o.newSet(), a.Replicas
		case rollout.DeleteSet:
			p.remove = append(p.remove, o.setNamed(a.Name))
		case rollout.ScaleSet:
			// Is among the edits.
		}
	}
	if o.current != nil && rollout.Revision(o.current) < p.revision && len(o.sets) > 1 {
		p.found = o.current.Name
	}
	return p
}

func (o *observation) setNamed(name string) *clusterv1alpha1.MachineSet {
	for i := range o.sets {
		if o.sets[i].Name == name {
			return &o.sets[i]
		}
	}
	return nil
}

// edits returns the changes of sets: of those that are scaled, and of those that lack something of
// the deployment.
func (o *observation) edits(actions []rollout.Action) []edit {
	scaled := map[string]rollout.ScaleSet{}
	for _, a := range actions {
		if s, ok := a.(rollout.ScaleSet); ok {
			scaled[s.Name] = s
		}
	}
	var edits []edit
	for i := range o.sets {
		if !o.sets[i].DeletionTimestamp.IsZero() {
			continue
		}
		e := edit{from: &o.sets[i], to: o.sets[i].DeepCopy()}
		revision := rollout.Revision(e.from)
		if e.from == o.current {
			revision = o.newRevision()
			o.updateInPlace(e.to)
		}
		o.syncMetadata(e.to, revision, o.state.Part(&o.state.Sets[i]))
		if s, ok := scaled[e.to.Name]; ok {
			e.reason = s.Reason
			o.setSize(e.to, s.To, s.Reason)
		}
		if !apiequality.Semantic.DeepEqual(e.from, e.to) {
			edits = append(edits, e)
		}
	}
	return edits
}

// newSet returns the set for the template, without Machines.
func (o *observation) newSet() *clusterv1alpha1.MachineSet {
	hash := o.hash()
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       o.md.Namespace,
			Name:            setName(o.md.Name, hash),
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(o.md)},
		},
		Spec: clusterv1alpha1.MachineSetSpec{
			Selector: *o.md.Spec.Selector.DeepCopy(),
			Template: *o.md.Spec.Template.DeepCopy(),
		},
	}
	if set.Spec.Selector.MatchLabels == nil {
		set.Spec.Selector.MatchLabels = map[string]string{}
	}
	set.Spec.Selector.MatchLabels[clusterv1alpha1.MachineTemplateHashLabel] = hash
	if o.template.After != nil {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.RolloutAfterAnnotation, o.template.After.UTC().Format(time.RFC3339))
	}
	o.updateInPlace(set)
	o.syncMetadata(set, o.newRevision(), o.state.Part(&rollout.Set{New: true}))
	o.setSize(set, 0, rollout.Scaling)
	return set
}

// hash tells templates apart in names. Whether two are the same is never decided by it. It depends
// on the deployment's uid, so that a deployment that is made again under its name gives its sets
// other names: Kubernetes' garbage collector may take a set for its namesake, see readLeftovers.
func (o *observation) hash() string {
	h := sha256.New()
	_, _ = h.Write(o.template.Canonical)
	_, _ = fmt.Fprintf(h, "/of/%s", o.md.UID)
	if o.template.After != nil {
		_, _ = fmt.Fprintf(h, "/after/%d", o.template.After.Unix())
	}
	if count := o.md.Status.CollisionCount; count != nil {
		_, _ = fmt.Fprintf(h, "/%d", *count)
	}
	return rand.SafeEncodeString(fmt.Sprintf("%x", h.Sum(nil)[:hashBytes]))
}

func setName(deployment, hash string) string {
	if longest := maxName - len(hash) - 1; len(deployment) > longest {
		deployment = strings.TrimRight(deployment[:longest], "-.")
	}
	return deployment + "-" + hash
}

// setSize sets the size of a set, and notes for which size of the deployment it was planned and
// why.
func (o *observation) setSize(set *clusterv1alpha1.MachineSet, to int32, reason rollout.Reason) {
	set.Spec.Replicas = &to
	for key, value := range map[string]string{
		clusterv1alpha1.DesiredReplicasAnnotation: strconv.Itoa(int(o.state.Replicas)),
		clusterv1alpha1.MaxReplicasAnnotation:     strconv.Itoa(int(o.maxReplicas())),
		clusterv1alpha1.ScalingReasonAnnotation:   string(reason),
	} {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
}

// maxReplicas is how many Machines the deployment may have.
func (o *observation) maxReplicas() int32 { return o.state.Replicas + o.state.Limits.MaxSurge }

// syncMetadata puts on a set what it has from the deployment and may change without replacing a
// machine. The cluster-autoscaler wants its label and its annotation both or not at all. A
// change of maxSurge alone scales no set, but sets replace Machines within it.
func (o *observation) syncMetadata(set *clusterv1alpha1.MachineSet, revision int64, part rollout.Part) {
	metav1.SetMetaDataLabel(&set.ObjectMeta, clusterv1alpha1.DeploymentNameLabel, o.md.Name)
	setRevision(set, revision)
	if p, ok := rollout.PlannedSize(set); ok && p.Replicas == o.state.Replicas {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.MaxReplicasAnnotation, strconv.Itoa(int(o.maxReplicas())))
	}
	o.annotateRollout(set, part)
	set.Spec.MinReadySeconds = o.md.Spec.MinReadySeconds
	set.Spec.Remediation = o.md.Spec.Strategy.Remediation.DeepCopy()
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

// updateInPlace gives the set of the deployment's template the part of it that reaches Machines in
// place. Old sets keep theirs: it is what their Machines were made from.
func (o *observation) updateInPlace(set *clusterv1alpha1.MachineSet) {
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

// newRevision is the revision of the template's set: the highest of all, and no two sets have the
// same.
func (o *observation) newRevision() int64 {
	highest, own := int64(0), int64(0)
	for i := range o.sets {
		if &o.sets[i] == o.current {
			own = rollout.Revision(&o.sets[i])
			continue
		}
		highest = max(highest, rollout.Revision(&o.sets[i]))
	}
	if own > highest {
		return own
	}
	return highest + 1
}

// setRevision gives the set that revision, and keeps the one that it had in its history.
func setRevision(set *clusterv1alpha1.MachineSet, revision int64) {
	if had := rollout.Revision(set); had > 0 && had != revision {
		history := set.Annotations[clusterv1alpha1.RevisionHistoryAnnotation]
		if history != "" {
			history += ","
		}
		history += strconv.FormatInt(had, 10)
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.RevisionHistoryAnnotation, truncateHistory(history))
	}
	for _, key := range []string{clusterv1alpha1.RevisionAnnotation, clusterv1alpha1.AutoscalerRevisionAnnotation} {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, strconv.FormatInt(revision, 10))
	}
}

// truncateHistory drops the oldest revisions of a history that has become too long.
func truncateHistory(history string) string {
	for len(history) > maxHistory {
		for history[0] != ',' {
			history = history[1:]
		}
		history = history[1:]
	}
	return history
}
