package judge

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// pod is a pod of a Node over its life.
type pod struct {
	name, node string
	// bound is when it was first seen on its Node.
	bound time.Time
	// claims are those of its volumes. stays: a label has drains leave it alone; nothing else that
	// they leave alone is run.
	claims []string
	stays  bool
	// evicted: core evicted it. terminating: it was told to end, and has until the instant grace
	// for that.
	evicted, terminating bool
	grace                time.Time
	// ended is when it was first seen to have ended, or to be gone.
	ended time.Time
}

// pod takes in a change of a pod.
func (j *Judge) pod(o *corev1.Pod, c Change) {
	if o.Spec.NodeName == "" {
		return
	}
	p := j.pods[o.UID]
	if p == nil {
		p = &pod{name: keyOf(o), node: o.Spec.NodeName, bound: c.At, claims: claimsOf(o), stays: o.Labels[clusterv1alpha1.DrainLabel] == clusterv1alpha1.DrainSkip}
		j.pods[o.UID] = p
	}
	if !o.DeletionTimestamp.IsZero() {
		if !p.terminating && setOf(j.options.ForeignNodes)[p.node] {
			j.violate(Foreign, c.At, "pod %s of the foreign Node %s was told to end", p.name, p.node)
		}
		p.terminating, p.grace = true, o.DeletionTimestamp.Time
	}
	ended := c.Gone || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed
	if ended && p.ended.IsZero() {
		p.ended = c.At
	}
}

// judgeEvictions: core does nothing to pods but evict them, and gives each its time to end.
func (j *Judge) judgeEvictions(h History) {
	evicted := map[string]bool{}
	for _, w := range h.Writes {
		if w.User != j.options.Core || !strings.HasPrefix(w.Resource, "pods") {
			continue
		}
		evicted[w.Namespace+"/"+w.Name] = true
		if w.Verb != "create" || w.Resource != "pods/eviction" {
			j.violate(Pods, w.At, "%s of %s %s/%s, which is no eviction", w.Verb, w.Resource, w.Namespace, w.Name)
		}
	}
	for _, p := range j.pods {
		p.evicted = p.evicted || evicted[p.name]
		if p.evicted && !p.terminating && !p.ended.IsZero() {
			j.violate(Pods, p.ended, "pod %s was evicted, and had no time to end", p.name)
			p.evicted = false
		}
	}
}

// judgePods: no VM is deleted under pods that have neither ended nor had their time to, unless the
// time for the drain is over.
func (d deletion) judgePods() {
	isTimedOut := !d.deleted.IsZero() && !d.at.Before(d.DeletionTimestamp.Add(d.judge.options.DrainTimeout))
	if !d.isOutOfReach() && !isTimedOut {
		d.judgeEmpty()
	}
}

// judgeEmpty: the pods that were on the Node when its Machine's deletion began have ended, or had
// their time. Those that stay go with it.
func (d deletion) judgeEmpty() {
	for _, p := range d.judge.pods {
		there := p.node == d.node && p.bound.Before(d.begun()) && (p.ended.IsZero() || p.ended.After(d.at.Add(d.judge.options.Patience)))
		if !there || p.stays || p.terminating && !p.grace.After(d.at) {
			continue
		}
		what := "it was not told to end"
		if p.terminating {
			what = "it had until " + p.grace.UTC().Format("15:04:05") + " to end"
		}
		d.judge.violate(Pods, d.at, "the VM of %s was deleted under pod %s: %s", keyOf(d.Machine), p.name, what)
	}
}
