package contract

import (
	"fmt"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Sizes in bytes. Sources: the comments on the fields in millwright/driver/v1alpha1.
const (
	// MaxMessageBytes is the receive limit of both sides.
	MaxMessageBytes = 8 << 20
	// MaxProviderSpecBytes bounds ProviderContext.provider_spec.
	MaxProviderSpecBytes = 512 << 10
	// MaxLastKnownStateBytes bounds last_known_state everywhere but in PartialState.
	MaxLastKnownStateBytes = 64 << 10
	// MaxPartialStateBytes bounds PartialState.last_known_state.
	MaxPartialStateBytes = 2 << 10
	// MaxProviderIDBytes bounds every provider_id.
	MaxProviderIDBytes = 512
	// MaxProviderIDAliases bounds the number of provider_id_aliases.
	MaxProviderIDAliases = 8
	// MaxConsoleBytes bounds GetConsoleOutputResponse.output.
	MaxConsoleBytes = 64 << 10
	// MaxStatusBytes bounds a whole gRPC status, details included.
	MaxStatusBytes = 4 << 10
	// DefaultMaxUserDataBytes holds where a driver sets no Limits.max_user_data_bytes.
	DefaultMaxUserDataBytes = 64 << 10
)

// DefaultMaxConcurrentRequests is how many requests core has under way at once where a driver sets
// no Limits.max_concurrent_requests.
const DefaultMaxConcurrentRequests = 64

// Deadlines of core's calls where neither the operator nor the driver sets others.
const (
	DefaultIdentityDeadline = 5 * time.Second
	DefaultStatusDeadline   = 30 * time.Second
	DefaultMutationDeadline = 30 * time.Second
	DefaultListPageDeadline = 60 * time.Second
)

// DefaultCreateSettle holds where a driver sets no Limits.create_settle: a VM that comes late costs
// more than a Machine that goes late. An explicit 0 is a promise that none comes late.
const DefaultCreateSettle = 5 * time.Minute

// CreateSettle returns how long after a create of unknown outcome the driver's VM may still appear.
// limits are the driver's and may be nil.
func CreateSettle(limits *driverv1alpha1.Limits) time.Duration {
	if limits.GetCreateSettle() == nil {
		return DefaultCreateSettle
	}
	return limits.GetCreateSettle().AsDuration()
}

// MaxCreateSettle bounds Limits.create_settle: more is a wrong unit, and would keep machines from
// ever being forgotten.
const MaxCreateSettle = 24 * time.Hour

// Revision is that of the contract which this module generates. Revisions are listed in
// docs/contract.md.
const Revision = 2

// CheckRevision returns an error, for people, unless a side with this revision and one with the
// revision that the other side has told can work together: those that differ by one at most.
// A side that tells 0 is of revision 1, which had no numbers.
func CheckRevision(told int32) error {
	other := max(told, 1)
	if other < Revision-1 || other > Revision+1 {
		return fmt.Errorf("it is of revision %d of the contract, this side of %d, and only neighbours work together: upgrade the older one", other, Revision)
	}
	return nil
}

// DriverPackage is the package of the contract that this module generates, as GetPluginInfo
// announces it.
const DriverPackage = "millwright.driver.v1alpha1"
