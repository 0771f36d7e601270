package judge

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// vm is a VM over its life.
type vm struct {
	*backendv1alpha1.VM
}

// slack is how far the cloud's clock and ours may be apart when one thing follows the other.
const slack = 50 * time.Millisecond

// judgeVMs: one VM for each uid, ever; none that is nobody's; none that outlives its Machine.
func (j *Judge) judgeVMs(h History) {
	byUID := map[string]*machine{}
	for _, m := range j.machines {
		if uid := uidOf(m.Machine); uid != "" {
			byUID[uid] = m
		}
	}
	j.forgetTakenBack(h)
	ever := map[string]string{}
	for id, v := range j.vms {
		ever[v.GetMachineUid()] = id
	}
	for _, v := range h.VMs {
		if v.GetClusterUid() != j.options.ClusterUID {
			continue
		}
		uid := v.GetMachineUid()
		if before, had := ever[uid]; had && before != v.GetId() {
			j.violate(OneVM, v.GetCreateTime().AsTime(), "machine uid %s has the VMs %s and %s", uid, before, v.GetId())
		}
		ever[uid] = v.GetId()
		if was := j.vms[v.GetId()]; was != nil && was.GetState() == backendv1alpha1.VMState_VM_STATE_GONE {
			continue
		}
		j.vms[v.GetId()] = &vm{v}
		m := byUID[uid]
		switch {
		case j.acts.has(Planted, v.GetId()):
			j.judgeStray(v)
		case m == nil:
			j.violate(OneVM, v.GetCreateTime().AsTime(), "VM %s was made for machine uid %s, which is no Machine's", v.GetId(), uid)
		case m.claims:
			j.violate(Foreign, v.GetCreateTime().AsTime(), "VM %s was made for Machine %s, which names another one", v.GetId(), keyOf(m.Machine))
		case !m.gone.IsZero() && outlives(v, m.gone):
			j.violate(NoneLeft, m.gone, "VM %s outlives its Machine %s", v.GetId(), keyOf(m.Machine))
		}
	}
	j.judgeOutlived(byUID)
}

// forgetTakenBack forgets servers for which there was no host: their driver takes them back, and
// they are nobody's then.
func (j *Judge) forgetTakenBack(h History) {
	for _, v := range h.VMs {
		if v.GetState() == backendv1alpha1.VMState_VM_STATE_GONE && v.GetClusterUid() == "" {
			delete(j.vms, v.GetId())
		}
	}
}

// judgeOutlived looks at VMs that have not changed, but whose Machines may have gone.
func (j *Judge) judgeOutlived(byUID map[string]*machine) {
	for id, v := range j.vms {
		m := byUID[v.GetMachineUid()]
		if v.GetState() == backendv1alpha1.VMState_VM_STATE_GONE || m == nil || m.gone.IsZero() || j.acts.has(Planted, id) {
			continue
		}
		j.violate(NoneLeft, m.gone, "VM %s is there still, and its Machine %s is gone", id, keyOf(m.Machine))
		delete(j.vms, id)
	}
}

func outlives(v *backendv1alpha1.VM, gone time.Time) bool {
	return v.GetState() != backendv1alpha1.VMState_VM_STATE_GONE || v.GetDeleteTime().AsTime().After(gone.Add(slack))
}

// judgeStray: a VM without a Machine is left alone while it is young.
func (j *Judge) judgeStray(v *backendv1alpha1.VM) {
	if v.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
		return
	}
	age := v.GetDeleteTime().AsTime().Sub(v.GetCreateTime().AsTime())
	if j.options.StrayAge == 0 || age < j.options.StrayAge {
		j.violate(Foreign, v.GetDeleteTime().AsTime(), "the stray VM %s was deleted at the age of %s; it is left alone for %s",
			v.GetId(), age.Round(time.Millisecond), j.options.StrayAge)
	}
}

// judgeLeft: what the cloud holds once all is settled is what the Machines need, and no more.
func (j *Judge) judgeLeft(h History) {
	alive := map[string]*machine{}
	for _, m := range j.machines {
		if m.gone.IsZero() {
			alive[uidOf(m.Machine)] = m
		}
	}
	foreign := setOf(j.options.Foreign)
	have := map[string]map[string]int{}
	for _, r := range h.Resources {
		uid := r.GetMachineUid()
		switch {
		case foreign[r.GetId()] || j.isOfStray(r):
			continue
		case r.GetClusterUid() != j.options.ClusterUID:
			j.violate(NoneLeft, j.world.now, "%s %s (%s) is left, and nobody can tell whose it is", r.GetKind(), r.GetId(), r.GetName())
			continue
		case alive[uid] == nil:
			j.violate(NoneLeft, j.world.now, "%s %s is left, and no Machine has its uid %s", r.GetKind(), r.GetId(), uid)
		}
		if have[uid] == nil {
			have[uid] = map[string]int{}
		}
		have[uid][r.GetKind()]++
	}
	for uid, m := range alive {
		if m.claims {
			continue
		}
		if want := j.options.Resources(m.Machine); !maps.Equal(have[uid], want) {
			j.violate(NoneLeft, j.world.now, "Machine %s has %v once all has settled, want %v", keyOf(m.Machine), have[uid], want)
		}
	}
}

// isOfStray says whether a resource belongs to a VM that chaos made without a Machine.
func (j *Judge) isOfStray(r *backendv1alpha1.Resource) bool {
	for id, v := range j.vms {
		if v.GetMachineUid() == r.GetMachineUid() && j.acts.has(Planted, id) {
			return true
		}
	}
	return false
}

// judgeForeign: what is not this cluster's stays as it is.
func (j *Judge) judgeForeign(h History) {
	foreignVMs, foreign, foreignNodes := setOf(j.options.ForeignVMs), setOf(j.options.Foreign), setOf(j.options.ForeignNodes)
	for _, v := range h.VMs {
		if foreignVMs[v.GetId()] && v.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING {
			j.violate(Foreign, j.world.now, "the foreign VM %s became %s", v.GetId(), v.GetState())
		}
	}
	for _, c := range h.Calls {
		if id := c.GetResourceId(); foreignVMs[id] || foreign[id] {
			j.violate(Foreign, c.GetReceiveTime().AsTime(), "%s was called with %s, which is foreign", c.GetOperation(), id)
		}
	}
	for _, r := range h.Resources {
		delete(foreign, r.GetId())
	}
	for _, id := range slices.Sorted(maps.Keys(foreign)) {
		j.violate(Foreign, j.world.now, "%s is gone, which was foreign", id)
	}
	for _, w := range h.Writes {
		if w.User == j.options.Core && strings.HasPrefix(w.Resource, "nodes") && foreignNodes[w.Name] {
			j.violate(Foreign, w.At, "%s of the foreign Node %s", w.Verb, w.Name)
		}
	}
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// node takes in a change of a Node.
func (j *Judge) node(o *corev1.Node, c Change) {
	j.world.notReady(o, c)
	if !c.Gone {
		return
	}
	j.world.nodesGone[o.Name] = c.At
	if setOf(j.options.ForeignNodes)[o.Name] {
		j.violate(Foreign, c.At, "the foreign Node %s is gone", o.Name)
	}
}
