package orphan

import (
	"cmp"
	"slices"
	"time"
)

// Policy is what the operator allows.
type Policy struct {
	// ClusterUID marks what is ours; the VMs of others are none of our business.
	ClusterUID string
	// Age is how old a VM must be; it has to exceed the time that a create may take.
	Age time.Duration
	// Most is how many VMs one scan may begin to delete.
	Most int
	// Delete is false where orphans are only reported.
	Delete bool
}

// VM is what the account holds for one uid.
type VM struct {
	UID, ClusterUID string
	// ProviderIDs are those of all VMs of this uid; there is none where only leftovers are there.
	ProviderIDs []string
	// Created is zero where the driver does not say.
	Created time.Time
	// Busy: a call for this uid is under way.
	Busy bool
}

// Names are the uids and providerIDs that Machines name.
type Names map[string]struct{}

// Add adds what is not empty.
func (n Names) Add(names ...string) {
	for _, name := range names {
		if name != "" {
			n[name] = struct{}{}
		}
	}
}

// include says whether a Machine names the VM.
func (n Names) include(vm VM) bool {
	for _, name := range append([]string{vm.UID}, vm.ProviderIDs...) {
		if _, known := n[name]; known {
			return true
		}
	}
	return false
}

// Suspects are the VMs of this cluster that no Machine names, in the order of their uids.
func Suspects(clusterUID string, vms []VM, named Names) []VM {
	var suspects []VM
	for _, vm := range vms {
		if vm.UID != "" && vm.ClusterUID == clusterUID && !named.include(vm) {
			suspects = append(suspects, vm)
		}
	}
	slices.SortFunc(suspects, func(a, b VM) int { return cmp.Compare(a.UID, b.UID) })
	return suspects
}

// Memory is what one process remembers of the orphans of one account, by uid. Losing it only makes
// orphans wait longer.
type Memory map[string]Sighting

// Sighting is what is remembered of one orphan.
type Sighting struct {
	// First is when it was first seen to be one, Scans in how many scans in a row.
	First time.Time
	Scans int
	// Attempts counts its deletes.
	Attempts int
}

// Scan is one complete list of an account, and what the API server said after it.
type Scan struct {
	Now time.Time
	// VMs is all that was listed.
	VMs []VM
	// Named is what Machines named after the list was complete: in the cache, and where the cache
	// left suspects, on the API server.
	Named Names
}

// Why says why an orphan stays for now.
type Why string

// Why an orphan stays.
const (
	// SeenOnce: another scan has to confirm it.
	SeenOnce Why = "SeenOnce"
	// TooYoung: a create may still be under way.
	TooYoung Why = "TooYoung"
	// Busy: a call for it is under way.
	Busy Why = "Busy"
	// ReportOnly: the operator does not allow to delete it.
	ReportOnly Why = "ReportOnly"
	// TooMany: others go first.
	TooMany Why = "TooMany"
)

// Held is an orphan that stays for now.
type Held struct {
	VM  VM
	Why Why
}

// Decision is what to do about a scan.
type Decision struct {
	// Delete are those to be deleted now, Held the other orphans.
	Delete []VM
	Held   []Held
	// Gone are the uids whose deletion was tried before and that are not there any more.
	Gone []string
	// Memory goes into the next decision.
	Memory Memory
}

// Decide returns which orphans go. Those whose deletion was tried least often come first, so that
// one that cannot be deleted holds up no other.
func Decide(p Policy, m Memory, s Scan) Decision {
	d := Decision{Memory: Memory{}}
	orphans := Suspects(p.ClusterUID, s.VMs, s.Named)
	for _, vm := range orphans {
		seen := m[vm.UID]
		if seen.Scans == 0 {
			seen.First = s.Now
		}
		seen.Scans++
		d.Memory[vm.UID] = seen
	}
	slices.SortStableFunc(orphans, func(a, b VM) int {
		x, y := d.Memory[a.UID], d.Memory[b.UID]
		return cmp.Or(cmp.Compare(x.Attempts, y.Attempts), x.First.Compare(y.First))
	})
	for _, vm := range orphans {
		seen := d.Memory[vm.UID]
		if why := p.whyHeld(vm, seen, s.Now, len(d.Delete)); why != "" {
			d.Held = append(d.Held, Held{VM: vm, Why: why})
			continue
		}
		seen.Attempts++
		d.Memory[vm.UID] = seen
		d.Delete = append(d.Delete, vm)
	}
	for uid, seen := range m {
		if _, still := d.Memory[uid]; !still && seen.Attempts > 0 && !isListed(s.VMs, uid) {
			d.Gone = append(d.Gone, uid)
		}
	}
	slices.Sort(d.Gone)
	return d
}

// isListed says whether the account holds anything of a uid.
func isListed(vms []VM, uid string) bool {
	return slices.ContainsFunc(vms, func(vm VM) bool { return vm.UID == uid })
}

// whyHeld returns why an orphan stays when so many others go; empty when it may go.
func (p Policy) whyHeld(vm VM, seen Sighting, now time.Time, going int) Why {
	born := vm.Created
	if born.IsZero() {
		born = seen.First
	}
	switch {
	case seen.Scans < 2:
		return SeenOnce
	case now.Sub(born) < p.Age:
		return TooYoung
	case vm.Busy:
		return Busy
	case !p.Delete:
		return ReportOnly
	case going >= p.Most:
		return TooMany
	}
	return ""
}
