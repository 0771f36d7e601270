package orphan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/orphan"
)

// search is the search in the accounts of one driver. One goroutine uses it.
type search struct {
	*collector
	name   string
	driver *driver.Driver
	log    logr.Logger
	// memories are those of each account; told is what was last said of an orphan, by uid.
	memories map[uint64]orphan.Memory
	told     map[string]string
}

// run scans until ctx ends.
func (s *search) run(ctx context.Context) {
	for ctx.Err() == nil {
		result := "complete"
		if err := s.scan(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			result = "failed"
			s.log.Info("A scan for orphans failed and counts for nothing", "error", err.Error())
		}
		s.measures.scans.WithLabelValues(s.name, result).Inc()
		s.pause(ctx, s.Interval)
	}
}

func (s *search) pause(ctx context.Context, long time.Duration) {
	timer := s.Clock.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// scan looks through all accounts once. An account whose list fails is left out, and its memory
// stays as it is; an error says what failed.
func (s *search) scan(ctx context.Context) error {
	accounts, unnamed := s.accounts(ctx, s.driver)
	holdings, failed := s.lists(ctx, accounts)
	failed = errors.Join(unnamed, failed)
	// Only now: who names a VM did so before it was made.
	named, err := s.cached(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	if s.suspicious(holdings, named) {
		if err := s.addLive(ctx, named); err != nil {
			return errors.Join(failed, err)
		}
	}
	maps.DeleteFunc(s.memories, func(account uint64, _ orphan.Memory) bool {
		_, still := accounts[account]
		return !still
	})
	s.decide(ctx, holdings, named)
	return failed
}

// holding is what one account holds.
type holding struct {
	account uint64
	vms     []orphan.VM
	found   map[string]driver.Machine
}

// lists asks each account for all it holds. What two accounts show, as two specs with one
// credential do, counts for the first.
func (s *search) lists(ctx context.Context, accounts map[uint64]driver.Machine) ([]holding, error) {
	var holdings []holding
	var failed error
	seen := map[string]bool{}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		all, err := s.driver.ListOwned(ctx, accounts[account])
		if errors.Is(err, driver.ErrCannotList) {
			return nil, nil
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("list an account: %w", err))
			continue
		}
		h := holding{account: account, found: map[string]driver.Machine{}}
		for _, one := range all {
			uid := one.Machine.UID
			if seen[uid] {
				continue
			}
			seen[uid] = true
			h.found[uid] = one.Machine
			h.vms = append(h.vms, orphan.VM{
				UID: uid, ClusterUID: one.ClusterUID, ProviderIDs: one.ProviderIDs, Created: one.Created, Busy: one.Busy,
			})
		}
		holdings = append(holdings, h)
	}
	return holdings, failed
}

// suspicious says whether there is anything that the API server has to be asked about.
func (s *search) suspicious(holdings []holding, named orphan.Names) bool {
	return slices.ContainsFunc(holdings, func(h holding) bool {
		return len(orphan.Suspects(s.ClusterUID, h.vms, named)) > 0
	})
}

// decide does what core/orphan decides about each account, and counts.
func (s *search) decide(ctx context.Context, holdings []holding, named orphan.Names) {
	policy := orphan.Policy{ClusterUID: s.ClusterUID, Age: s.age(), Most: s.Most, Delete: s.Delete}
	found, held := 0, 0
	for _, h := range holdings {
		d := orphan.Decide(policy, s.memories[h.account], orphan.Scan{Now: s.Clock.Now(), VMs: h.vms, Named: named})
		s.memories[h.account] = d.Memory
		policy.Most -= len(d.Delete)
		found += len(d.Delete) + len(d.Held)
		held += len(d.Held)
		for _, one := range d.Held {
			s.hold(h.found[one.VM.UID], one.Why)
		}
		for _, uid := range d.Gone {
			s.gone(uid)
		}
		held += s.delete(ctx, h, d.Delete)
	}
	s.measures.now.WithLabelValues(s.name, stateFound).Set(float64(found))
	s.measures.now.WithLabelValues(s.name, stateHeld).Set(float64(held))
}

// age is the operator's, but never less than a create may take.
func (s *search) age() time.Duration {
	caps := s.driver.Capabilities()
	return max(s.Age, caps.Deadlines.Mutation+caps.CreateSettle)
}

// hold tells of an orphan that stays, where somebody has to do something about it.
func (s *search) hold(m driver.Machine, why orphan.Why) {
	s.log.V(1).Info("An orphan stays for now", "uid", m.UID, "providerID", m.ProviderID, "why", why)
	if why == orphan.ReportOnly {
		s.tell(m, corev1.EventTypeWarning, "OrphanFound", "It stays, as --orphan-collection=report wants it.")
	}
}

// collectInterval is how often the end of a delete is asked for.
const collectInterval = 100 * time.Millisecond

// delete sends one delete for each and waits for their ends, which their deadlines bound. It
// returns how many came to nothing. What a delete leaves is the next scan's business: by then a
// Machine may have come back.
func (s *search) delete(ctx context.Context, h holding, vms []orphan.VM) (failed int) {
	underWay := map[string]driver.Machine{}
	for _, vm := range vms {
		m := h.found[vm.UID]
		if err := s.driver.StartDelete(ctx, m); err != nil {
			failed++
			s.driver.Forget(key(m), m.UID)
			s.log.Info("An orphan cannot be deleted now", "uid", m.UID, "providerID", m.ProviderID, "error", err.Error())
			continue
		}
		s.log.Info("Deleting an orphan", "uid", m.UID, "providerID", m.ProviderID, "machine", key(m), "created", vm.Created)
		underWay[m.UID] = m
	}
	for len(underWay) > 0 && ctx.Err() == nil {
		s.pause(ctx, collectInterval)
		for uid, m := range underWay {
			outcome, progress := s.driver.Collect(key(m), uid)
			if progress == driver.UnderWay {
				continue
			}
			delete(underWay, uid)
			s.driver.Forget(key(m), uid)
			failed += s.ended(h.account, m, outcome)
		}
	}
	return failed
}

// ended tells how a delete ended, and returns 1 if it came to nothing.
func (s *search) ended(account uint64, m driver.Machine, o instance.Outcome) int {
	if o.Failure != nil {
		s.tell(m, corev1.EventTypeWarning, "OrphanNotDeleted", o.Failure.Error())
		return 1
	}
	s.tell(m, corev1.EventTypeNormal, "OrphanDeleted", "It is being deleted.")
	if o.Instance == nil {
		delete(s.memories[account], m.UID)
		s.gone(m.UID)
	}
	return 0
}

// gone counts an orphan of which nothing is left.
func (s *search) gone(uid string) {
	s.log.Info("An orphan is gone", "uid", uid)
	s.measures.deleted.WithLabelValues(s.name).Inc()
	delete(s.told, uid)
}

// maxTold bounds what is remembered of what was said.
const maxTold = 1000

// tell emits an event, and not the same one about an orphan again.
func (s *search) tell(m driver.Machine, severity, reason, what string) {
	if s.told[m.UID] == reason {
		return
	}
	if len(s.told) >= maxTold {
		clear(s.told)
	}
	s.told[m.UID] = reason
	vm := "What is left of VM " + m.UID
	if m.ProviderID != "" {
		vm = "VM " + m.ProviderID
	}
	s.events.Eventf(s.Regarding, nil, severity, reason, "CollectOrphans",
		"%s was made for Machine %s, and no Machine names it. %s", vm, key(m), what)
}

func key(m driver.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}
