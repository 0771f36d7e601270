package cloud

import (
	"fmt"
	"slices"

	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// store is what a cloud holds and held.
type store struct {
	name       string // tells this cloud's ids from another's
	seq        int64
	vms        map[int64]*vm // by Seq, also those that are gone
	vmTokens   map[string]int64
	vmHistory  testcloud.History
	alive      *inventory[*vm]
	nics       *inventory[*nic]
	nicTokens  map[string]string
	quota      map[string]int64
	quotaSet   bool             // by a hook: then it is part of the state
	aliveCount map[string]int64 // by cluster; "" counts all
	peak       map[string]int64 // likewise
}

func newStore(quota map[string]int64) *store {
	return &store{
		vms: map[int64]*vm{}, vmTokens: map[string]int64{}, nicTokens: map[string]string{},
		alive: newInventory[*vm](), nics: newInventory[*nic](),
		quota: quota, aliveCount: map[string]int64{}, peak: map[string]int64{},
	}
}

// newRecord numbers a resource of this kind.
func (s *store) newRecord(kind, account string) record {
	s.seq++
	return record{Seq: s.seq, ID: fmt.Sprintf("%s-%s-%06d", kind, s.name, s.seq), Account: account, Created: testcloud.Now()}
}

// checkQuota returns an error when one more is too many. A negative limit is none.
func (s *store) checkQuota(kind string, used int64) error {
	limit, limited := s.quota[kind]
	if !limited || limit < 0 || used < limit {
		return nil
	}
	return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_QUOTA_EXCEEDED, kind,
		"Quota exceeded for %s: requested 1, but already used %d of %d", kind, used, limit)
}

// putVM takes in a VM that is new, here or in the journal.
func (s *store) putVM(v *vm) {
	s.vms[v.Seq] = v
	if v.Token != "" {
		s.vmTokens[v.tokenKey()] = v.Seq
	}
	s.seq = max(s.seq, v.Seq)
	if v.State == gone {
		return
	}
	s.alive.add(v)
	s.countAlive(v, 1)
}

// dropVM takes a VM away that is gone or superseded; its history stays.
func (s *store) dropVM(v *vm) {
	s.alive.remove(v.ID)
	s.countAlive(v, -1)
}

// putNIC takes in a NIC that is new, here or in the journal.
func (s *store) putNIC(n *nic) {
	s.nics.add(n)
	if n.Token != "" {
		s.nicTokens[n.tokenKey()] = n.ID
	}
	s.seq = max(s.seq, n.Seq)
}

// dropNIC takes a NIC away, if it is there.
func (s *store) dropNIC(id string) {
	if n := s.nics.byID[id]; n != nil {
		delete(s.nicTokens, n.tokenKey())
		s.nics.remove(id)
	}
}

// countAlive keeps the counts of VMs, and their peaks.
func (s *store) countAlive(v *vm, by int64) {
	clusters := []string{""}
	if cluster := v.clusterUID(); cluster != "" {
		clusters = append(clusters, cluster)
	}
	for _, cluster := range clusters {
		s.aliveCount[cluster] += by
		s.peak[cluster] = max(s.peak[cluster], s.aliveCount[cluster])
	}
}

// touch gives the VM a new revision.
func (s *store) touch(v *vm) {
	v.Revision = s.vmHistory.Note(v.Seq)
	s.vmHistory.Tidy(len(s.vms), s.isCurrent)
}

func (s *store) isCurrent(ch testcloud.Change) bool { return s.vms[ch.Key].Revision == ch.Revision }

// lookup returns what is known of a resource, nothing when it is not there.
func (s *store) lookup(id string) record {
	if v := s.alive.byID[id]; v != nil {
		return v.record
	}
	if n := s.nics.byID[id]; n != nil {
		return n.record
	}
	return record{}
}

// anyVM finds a VM that is not gone by its id or provider id, whosever it is; nil when there is
// none.
func (s *store) anyVM(id string) *vm {
	if v := s.alive.byID[id]; v != nil {
		return v
	}
	for _, v := range s.alive.ordered {
		if v.providerID() == id {
			return v
		}
	}
	return nil
}

// restore takes in one entry of the journal.
func (s *store) restore(e entry) {
	if e.Name != "" {
		s.name = e.Name
	}
	if t := e.Totals; t != nil {
		s.seq = max(s.seq, t.Seq)
		for cluster, n := range t.Peak {
			s.peak[cluster] = max(s.peak[cluster], n)
		}
	}
	if e.VM != nil {
		s.restoreVM(e.VM, e.UserData)
	}
	if e.NIC != nil {
		s.nics.remove(e.NIC.ID)
		s.putNIC(e.NIC)
	}
	if e.NICGone != "" {
		s.dropNIC(e.NICGone)
	}
	if e.Quota != nil {
		s.quota, s.quotaSet = e.Quota, true
	}
}

func (s *store) restoreVM(v *vm, userData []byte) {
	v.userData = userData
	if old := s.vms[v.Seq]; old != nil {
		v.userData = old.userData
		if old.State != gone {
			s.dropVM(old)
		}
	}
	if v.State == gone {
		v.userData = nil
	}
	s.putVM(v)
}

// restoreHistory puts the VMs back into the order of their last changes.
func (s *store) restoreHistory() {
	ordered := make([]*vm, 0, len(s.vms))
	for _, v := range s.vms {
		ordered = append(ordered, v)
	}
	slices.SortFunc(ordered, func(a, b *vm) int { return int(a.Revision - b.Revision) })
	for _, v := range ordered {
		s.vmHistory.Restore(v.Revision, v.Seq)
	}
}

// entries returns all that the store holds, in an order in which it can be restored.
func (s *store) entries() []entry {
	var all []entry
	if s.name != "" {
		all = append(all, entry{Name: s.name})
	}
	if s.quotaSet {
		all = append(all, entry{Quota: s.quota})
	}
	for _, n := range s.nics.ordered {
		all = append(all, entry{NIC: n})
	}
	for _, ch := range s.vmHistory.After(0) {
		if v := s.vms[ch.Key]; v.Revision == ch.Revision {
			all = append(all, entry{VM: v, UserData: v.userData})
		}
	}
	return all
}
