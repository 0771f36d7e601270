package judge

import (
	"strings"
	"time"
)

// deletion is the first time that the deletion of a Machine's VM was asked for.
type deletion struct {
	*machine

	judge *Judge
	vm    string
	at    time.Time
}

// firstDeletes are those of a history.
func (j *Judge) firstDeletes(h History) []deletion {
	byUID := map[string]*machine{}
	for _, m := range j.machines {
		byUID[uidOf(m.Machine)] = m
	}
	var found []deletion
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
		found = append(found, deletion{m, j, v.GetId(), call.GetReceiveTime().AsTime()})
	}
	return found
}

// begun is when the deletion of the Machine began; when its VM's did, where that was to stay.
func (d deletion) begun() time.Time {
	if d.deleted.IsZero() || d.deleted.After(d.at) {
		return d.at
	}
	return d.deleted
}

// isOutOfReach says whether a Machine's VM may be deleted whatever is on it: it did not run or has
// no Node any more, by somebody else's doing.
func (d deletion) isOutOfReach() bool {
	if d.node == "" || d.deleted.IsZero() {
		return d.node == ""
	}
	if gone, is := d.judge.world.nodesGone[d.node]; is && gone.Before(d.at) {
		return true
	}
	return d.judge.acts.hasChanged(d.vm, d.at)
}
