package planted

import (
	"slices"

	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// Bug is a mistake that somebody might make.
type Bug struct {
	// Name is what the command calls it, What says what is wrong.
	Name, What string
	// Breaks are promises of which it breaks one at the least; which one comes first is a matter of
	// chance.
	Breaks []string
	// File is where it is, and New the mistake in place of Old, which stands there once.
	File, Old, New string
}

var bugs = []Bug{
	{
		Name: "finalizer-early", What: "a Machine's finalizer goes when its VM's deletion was asked for, not when it is gone",
		Breaks: []string{judge.NoneLeft}, File: "core/lifecycle/delete.go",
		Old: `	case s.Driver.UnderWay:
		return showDeleting(s, d), true`,
		New: `	case s.Driver.UnderWay && s.Memory.Attempted == instance.Delete:
		d.Memory.Gone = true
		return d, false
	case s.Driver.UnderWay:
		return showDeleting(s, d), true`,
	},
	{
		Name: "orphan-without-age", What: "a VM that no Machine names is deleted however young it is",
		Breaks: []string{judge.Foreign}, File: "core/orphan/decide.go",
		Old: `case now.Sub(born) < p.Age:`,
		New: `case now.Sub(born) < 0:`,
	},
	{
		Name: "expectation-skipped", What: "a set decides on what its cache shows, and forgets what it did a moment ago",
		Breaks: []string{judge.Surge}, File: "core/controllers/machineset/memory.go",
		Old: `	view := m.pending.View(cached)`,
		New: `	view := cached
	_ = m.pending.View(cached)`,
	},
	{
		Name: "availability-late", What: "a Machine counts as available for ten seconds more after it stopped to be",
		Breaks: []string{judge.Availability}, File: "core/health/machine.go",
		Old: `	if !IsReady(m) {
		return false, 0
	}`,
		New: `	if !IsReady(m) {
		c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady)
		return c != nil && now.Sub(c.LastTransitionTime.Time) < 10*time.Second && m.DeletionTimestamp.IsZero(), 0
	}`,
	},
	{
		Name: "create-under-a-new-key", What: "a create that failed is repeated under another uid",
		Breaks: []string{judge.OneVM, judge.Settles}, File: "core/controllers/machine/apply.go",
		Old: `		err = s.driver.StartCreate(ctx, s.driverRequest(), `,
		New: `		request := s.driverRequest()
		if last := s.state.Memory.Last; last != nil && last.Failure != nil {
			request.UID += "-again"
		}
		err = s.driver.StartCreate(ctx, request, `,
	},
	{
		Name: "provider-id-believed", What: "a providerID counts though no driver has confirmed it",
		Breaks: []string{judge.Foreign}, File: "core/lifecycle/identity.go",
		Old: `	if id == "" || s.Machine.UIDTaken != "" {`,
		New: `	if id != "" {
		return true
	}
	if s.Machine.UIDTaken != "" {`,
	},
	{
		Name: "copies-never-read", What: "a Secret that is gone is not replaced by its copy",
		Breaks: []string{judge.Settles}, File: "core/specresolver/reader.go",
		Old: `	if !e.MayExist || r.copies == nil ||`,
		New: `	if e.MayExist || r.copies == nil ||`,
	},
	{
		Name: "unreachable-at-once", What: "pods are not waited for as soon as their Node is called silent",
		Breaks: []string{judge.Pods}, File: "core/lifecycle/drain.go",
		Old: `return s.Clock.Nodes-silence.Since >= s.Machine.UnreachableAfter`,
		New: `return silence.Since >= 0`,
	},
	{
		Name: "token-kept", What: "a machine's token stays when its Node is there",
		Breaks: []string{judge.NoneLeft}, File: "core/lifecycle/token.go",
		Old: `	case mayHaveToken(s):
		return d.act(DeleteToken)
	case d.bootstrapReason == "" ||`,
		New: `	case d.bootstrapReason == "" ||`,
	},
	{
		Name: "hooks-ignored", What: "a VM is deleted though an annotation holds its Machine's deletion",
		Breaks: []string{judge.Hooks}, File: "core/lifecycle/hooks.go",
		Old: `	if s.hooksOfVM() == "" {`,
		New: `	if s.hooksOfVM() == "" || s.Machine.UID != "" {`,
	},
	{
		Name: "volumes-ignored", What: "a VM is deleted though volumes of drained pods are attached to its Node",
		Breaks: []string{judge.Volumes}, File: "core/lifecycle/volumes.go",
		Old: `	case isDetachMoot(s, d):`,
		New: `	case isDetachMoot(s, d) || s.Machine.UID != "":`,
	},
	{
		Name: "unhealthy-at-once", What: "a health check does not wait for the timeout of a condition",
		Breaks: []string{judge.Health}, File: "core/healthcheck/examine.go",
		Old: `		left, isBlind := y.timeout-s.remember(next, m.UID, y), `,
		New: `		left, isBlind := min(0, y.timeout-s.remember(next, m.UID, y)), `,
	},
}

// Bugs returns all.
func Bugs() []Bug { return slices.Clone(bugs) }

// Find returns the bug of a name.
func Find(name string) (Bug, bool) {
	for _, b := range bugs {
		if b.Name == name {
			return b, true
		}
	}
	return Bug{}, false
}
