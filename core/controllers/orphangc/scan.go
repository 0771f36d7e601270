package orphangc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/orphan"
)

// scanner scans the accounts of one driver. One goroutine uses it.
type scanner struct {
	*collector
	name   string
	driver *driver.Driver
	log    logr.Logger
	// memories are those of each account; reported is the reason of the last event about an orphan,
	// by uid.
	memories map[uint64]orphan.Memory
	reported map[string]string
}

// run scans once, and counts that.
func (s *scanner) run(ctx context.Context) {
	result := "complete"
	if err := s.scan(ctx); err != nil {
		if ctx.Err() != nil {
			return
		}
		result = "failed"
		s.log.Info("A scan for orphans failed and counts for nothing", "error", err.Error())
	}
	s.metrics.scans.WithLabelValues(s.name, result).Inc()
}

// scan looks through all accounts once. An account whose list fails is left out, and its memory
// stays as it is; an error says what failed.
func (s *scanner) scan(ctx context.Context) error {
	accounts, accountErr := s.findAccounts(ctx, s.driver)
	listed, failed := s.listAccounts(ctx, accounts)
	failed = errors.Join(accountErr, failed)
	// The Machines are read after the VMs: a Machine names its VM before that is made.
	named, err := s.cachedNames(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	if slices.ContainsFunc(listed, func(a listedAccount) bool { return len(orphan.Suspects(s.ClusterUID, a.vms, named)) > 0 }) {
		if err := s.addLiveNames(ctx, named); err != nil {
			return errors.Join(failed, err)
		}
	}
	maps.DeleteFunc(s.memories, func(account uint64, _ orphan.Memory) bool {
		_, still := accounts[account]
		return !still
	})
	s.collect(ctx, listed, named)
	return failed
}

// listedAccount is what an account holds.
type listedAccount struct {
	account uint64
	vms     []orphan.VM
	// machines are what drivers are asked about the VMs by, by uid.
	machines map[string]wire.Machine
}

// listAccounts asks each account for all it holds. Two specs with one credential name one account
// twice: what both show counts for the first.
func (s *scanner) listAccounts(ctx context.Context, accounts map[uint64]wire.Machine) ([]listedAccount, error) {
	var listed []listedAccount
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
		a := listedAccount{account: account, machines: map[string]wire.Machine{}}
		for _, one := range all {
			uid := one.Machine.UID
			if seen[uid] {
				continue
			}
			seen[uid] = true
			a.machines[uid] = one.Machine
			a.vms = append(a.vms, orphan.VM{
				UID: uid, ClusterUID: one.ClusterUID, ProviderIDs: one.ProviderIDs, Created: one.Created, Busy: one.Busy,
			})
		}
		listed = append(listed, a)
	}
	return listed, failed
}

// collect does what core/orphan decides about each account, and counts.
func (s *scanner) collect(ctx context.Context, listed []listedAccount, named orphan.Names) {
	policy := orphan.Policy{ClusterUID: s.ClusterUID, Age: s.minAge(), Most: s.most, Delete: s.Delete}
	found, held := 0, 0
	for _, a := range listed {
		d := orphan.Decide(policy, s.memories[a.account], orphan.Scan{Now: s.clock.Now(), VMs: a.vms, Named: named})
		s.memories[a.account] = d.Memory
		policy.Most -= len(d.Delete)
		found += len(d.Delete) + len(d.Held)
		held += len(d.Held)
		for _, one := range d.Held {
			s.recordHeld(a.machines[one.VM.UID], one.Why)
		}
		for _, uid := range d.Gone {
			s.recordGone(uid)
		}
		held += s.delete(ctx, a, d.Delete)
	}
	s.metrics.orphans.WithLabelValues(s.name, stateFound).Set(float64(found))
	s.metrics.orphans.WithLabelValues(s.name, stateHeld).Set(float64(held))
}

// minAge is how old an orphan must be to be deleted: as old as the operator says, but never less
// than a create may take.
func (s *scanner) minAge() time.Duration {
	caps := s.driver.Capabilities()
	return max(s.Age, caps.Deadlines.Mutation+caps.CreateSettle)
}

// recordHeld tells of an orphan that stays, where somebody has to do something about it.
func (s *scanner) recordHeld(m wire.Machine, why orphan.Why) {
	s.log.V(1).Info("An orphan stays for now", "uid", m.UID, "providerID", m.ProviderID, "why", why)
	if why == orphan.ReportOnly {
		s.recordEvent(m, corev1.EventTypeWarning, "OrphanFound", "It stays, as --orphan-collection=report wants it.")
	}
}

// outcomeInterval is how often is asked whether a delete has ended.
const outcomeInterval = 100 * time.Millisecond

// delete sends one delete for each VM and waits until all have ended, which their deadlines bound.
// It returns how many failed. What a delete leaves over is left to the next scan: by then a Machine
// may have come back.
func (s *scanner) delete(ctx context.Context, a listedAccount, vms []orphan.VM) (failed int) {
	underWay := map[string]wire.Machine{}
	for _, vm := range vms {
		m := a.machines[vm.UID]
		if err := s.driver.StartDelete(ctx, m); err != nil {
			failed++
			s.driver.Forget(m.Key(), m.UID)
			s.log.Info("An orphan cannot be deleted now", "uid", m.UID, "providerID", m.ProviderID, "error", err.Error())
			continue
		}
		s.log.Info("Deleting an orphan", "uid", m.UID, "providerID", m.ProviderID, "machine", m.Key(), "created", vm.Created)
		underWay[m.UID] = m
	}
	_ = wait.PollUntilContextCancel(ctx, outcomeInterval, true, func(context.Context) (haveEnded bool, err error) {
		maps.DeleteFunc(underWay, func(uid string, m wire.Machine) bool {
			outcome, progress := s.driver.Collect(m.Key(), uid)
			if progress == driver.UnderWay {
				return false
			}
			s.driver.Forget(m.Key(), uid)
			failed += s.recordEnd(a.account, m, outcome)
			return true
		})
		return len(underWay) == 0, nil
	})
	return failed
}

// recordEnd tells how a delete ended. It returns 1 if it failed, else 0.
func (s *scanner) recordEnd(account uint64, m wire.Machine, o instance.Outcome) int {
	if o.Failure != nil {
		s.recordEvent(m, corev1.EventTypeWarning, "OrphanNotDeleted", o.Failure.Error())
		return 1
	}
	s.recordEvent(m, corev1.EventTypeNormal, "OrphanDeleted", "It is being deleted.")
	if o.Instance == nil {
		delete(s.memories[account], m.UID)
		s.recordGone(m.UID)
	}
	return 0
}

// recordGone counts an orphan of which nothing is left.
func (s *scanner) recordGone(uid string) {
	s.log.Info("An orphan is gone", "uid", uid)
	s.metrics.deleted.WithLabelValues(s.name).Inc()
	delete(s.reported, uid)
}

// maxReported bounds how many reasons are remembered.
const maxReported = 1000

// recordEvent emits an event, and not the same one about an orphan again.
func (s *scanner) recordEvent(m wire.Machine, severity, reason, what string) {
	if s.reported[m.UID] == reason {
		return
	}
	if len(s.reported) >= maxReported {
		clear(s.reported)
	}
	s.reported[m.UID] = reason
	vm := "What is left of VM " + m.UID
	if m.ProviderID != "" {
		vm = "VM " + m.ProviderID
	}
	s.events.Eventf(s.Regarding, nil, severity, reason, "CollectOrphans",
		"%s was made for Machine %s, and no Machine names it. %s", vm, m.Key(), what)
}
