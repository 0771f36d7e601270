package judge

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// pod is a pod of a Node over its life.
type pod struct {
	name, node string
	// bound is when it was first seen on its Node.
	bound time.Time
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
		p = &pod{name: keyOf(o), node: o.Spec.NodeName, bound: c.At}
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

// judgePods: no VM is deleted under pods that have neither ended nor had their time to.
func (j *Judge) judgePods(h History) {
	j.judgeEvictions(h)
	byUID := map[string]*machine{}
	for _, m := range j.machines {
		byUID[uidOf(m.Machine)] = m
	}
	for _, call := range h.Calls {
		v := j.vms[call.GetResourceId()]
		if v == nil || !strings.HasPrefix(call.GetOperation(), "Delete") {
			continue
		}
		m := byUID[v.GetMachineUid()]
		if m == nil || m.emptied {
			continue
		}
		m.emptied = true
		if at := call.GetReceiveTime().AsTime(); !j.mayLosePods(m, v.VM, at) {
			j.judgeEmpty(m, at)
		}
	}
}

// mayLosePods says whether a Machine's VM may be deleted whatever pods are on it: it did not run or
// has no Node any more, by somebody else's doing, or the time for the drain is over.
func (j *Judge) mayLosePods(m *machine, v *backendv1alpha1.VM, at time.Time) bool {
	if m.node == "" || m.deleted.IsZero() {
		return m.node == ""
	}
	if gone, is := j.world.nodesGone[m.node]; is && gone.Before(at) {
		return true
	}
	if j.acts.hasChanged(v.GetId(), at) {
		return true
	}
	return !at.Before(m.DeletionTimestamp.Add(j.options.DrainTimeout))
}

// judgeEmpty: the pods that were on the Node when its Machine's deletion began have ended, or had
// their time.
func (j *Judge) judgeEmpty(m *machine, at time.Time) {
	begun := at
	if !m.deleted.IsZero() {
		begun = m.deleted
	}
	for _, p := range j.pods {
		there := p.node == m.node && p.bound.Before(begun) && (p.ended.IsZero() || p.ended.After(at.Add(j.options.Patience)))
		if !there || p.terminating && !p.grace.After(at) {
			continue
		}
		what := "it was not told to end"
		if p.terminating {
			what = "it had until " + p.grace.UTC().Format("15:04:05") + " to end"
		}
		j.violate(Pods, at, "the VM of %s was deleted under pod %s: %s", keyOf(m.Machine), p.name, what)
	}
}
