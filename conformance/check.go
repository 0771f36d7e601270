package conformance

import (
	"context"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Level is how much a rule binds. A driver conforms to a profile when it passes each of its checks
// of level Must.
type Level string

// The levels, as in RFC 2119.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Tier says what a check does to the driver.
type Tier string

// The tiers: Core calls the driver, Fault has it, its cloud or its caller fail in the middle of a
// call.
const (
	Core  Tier = "core"
	Fault Tier = "fault"
)

// Profile names checks that have to be tried together for a driver to conform.
type Profile string

// The profiles. Each of the first three holds the one before it.
const (
	// ProfileBasic holds what can be seen from outside: every check of tier Core that needs no look
	// into the cloud.
	ProfileBasic Profile = "basic"
	// ProfileHooks also looks into the cloud: every check of tier Core.
	ProfileHooks Profile = "hooks"
	// ProfileFault has things fail: every check but those of ProfileHTTP.
	ProfileFault Profile = "fault"
	// ProfileHTTP is ProfileBasic, and has the cloud's HTTP API fail, by a fault proxy: for clouds
	// without hooks.
	ProfileHTTP Profile = "http"
)

// has says whether a profile holds a check. Without a profile every check is tried.
func (p Profile) has(c Check) bool {
	basic := c.Tier == Core && !c.Hooks && !c.Launch
	switch p {
	case ProfileBasic:
		return basic
	case ProfileHTTP:
		return basic || c.Proxy
	case ProfileHooks:
		return c.Tier == Core
	case ProfileFault:
		return !c.Proxy
	}
	return true
}

// Check is one rule of the contract, and how a driver is asked whether it keeps to it.
type Check struct {
	// ID is "group/name", and never changes its meaning.
	ID    string
	Level Level
	Tier  Tier
	// Feature has to be announced for the check to be run; UNSPECIFIED: every driver has to pass.
	Feature driverv1alpha1.Feature
	// Hooks says that the check has to look into the cloud.
	Hooks bool
	// Proxy says that the check has requests to the cloud fail, by a fault proxy.
	Proxy bool
	// Launch says that the check has to end the driver's process, so that the harness must have
	// started it.
	Launch bool
	// Musts are the numbers of the rules in the contract's comments that it tries: 42 for [M42].
	Musts []int
	// Rule is what the contract says, for people.
	Rule string

	run func(context.Context, *trial)
}

// Checks returns all checks, in the order in which they are run.
func Checks() []Check {
	checks := slices.Concat(identityChecks(), createChecks(), userDataChecks(), failureChecks(), statusChecks(), consoleChecks(), listChecks(), deleteChecks(),
		adoptChecks(), specChecks(), accessChecks(), execChecks())
	for i := range checks {
		checks[i].Tier = Core
	}
	return append(checks, faultChecks()...)
}
