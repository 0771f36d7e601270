package conformance

import (
	"context"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Level is how much a rule binds. A driver conforms when it passes each check of level Must that
// can be run.
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
	// Launch says that the check has to end the driver's process, so that the harness must have
	// started it.
	Launch bool
	// Rule is what the contract says, for people.
	Rule string

	run func(context.Context, *trial)
}

// Checks returns all checks, in the order in which they are run.
func Checks() []Check {
	checks := slices.Concat(identityChecks(), createChecks(), userDataChecks(), failureChecks(), statusChecks(), consoleChecks(), listChecks(), deleteChecks(), updateChecks(), specChecks(),
		accessChecks(), execChecks())
	for i := range checks {
		checks[i].Tier = Core
	}
	return append(checks, faultChecks()...)
}
