package judge

import (
	"strings"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// hook is an annotation that held a Machine's deletion from when that began.
type hook struct {
	// held: it was there when the deletion began, and holds the drain alone if drain is set.
	// released is when it was taken away; zero before.
	held, drain bool
	released    time.Time
}

// note takes in a change of a Machine, whose deletion begins with this change or not.
func (h *hook) note(o *clusterv1alpha1.Machine, c Change, begins bool) {
	drain, hooked := false, false
	for key := range o.Annotations {
		drain = drain || strings.HasPrefix(key, clusterv1alpha1.PreDrainHookAnnotationPrefix)
		hooked = hooked || drain || strings.HasPrefix(key, clusterv1alpha1.PreTerminateHookAnnotationPrefix)
	}
	switch {
	case begins:
		h.held, h.drain = hooked, drain
	case h.held && !hooked && h.released.IsZero():
		h.released = c.At
	}
}

// judgeHooks: no VM is deleted while a hook holds the deletion of its Machine. A Machine that has
// no Node has no drain to be held.
func (j *Judge) judgeHooks(h History) {
	byUID := map[string]*machine{}
	for _, m := range j.machines {
		byUID[uidOf(m.Machine)] = m
	}
	for _, call := range h.Calls {
		v := j.vms[call.GetResourceId()]
		if v == nil || !strings.HasPrefix(call.GetOperation(), "Delete") {
			continue
		}
		m, at := byUID[v.GetMachineUid()], call.GetReceiveTime().AsTime()
		if m == nil || m.hook.drain && m.node == "" || !m.hook.held || !m.hook.released.IsZero() && !at.Before(m.hook.released.Add(-slack)) {
			continue
		}
		j.violate(Hooks, at, "the VM of %s was deleted while an annotation held its deletion", keyOf(m.Machine))
	}
}
