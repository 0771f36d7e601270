package driver

import (
	"slices"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Capabilities are what a driver last said of itself. The zero value is a driver that was never reached:
// no features, and limits as the contract's defaults.
type Capabilities struct {
	// VendorVersion is for people.
	VendorVersion string
	// Features that core knows; others are left out.
	Features []driverv1alpha1.Feature
	// MaxUserDataBytes is never 0.
	MaxUserDataBytes int64
	// CreateSettle is how long after a create of unknown outcome its VM may still appear.
	CreateSettle time.Duration
	// ProviderIDPrefix is what every providerID of this driver begins with.
	ProviderIDPrefix string
	// MaxConcurrentRequests is never 0.
	MaxConcurrentRequests int
	// Deadlines are those that hold for this driver; none is 0.
	Deadlines Deadlines
}

// Has says whether the driver announced a feature.
func (c Capabilities) Has(feature driverv1alpha1.Feature) bool {
	return slices.Contains(c.Features, feature)
}
