package driver

import (
	"slices"
	"time"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

// Capabilities are what a driver last said of itself. Of one that was never reached they have no
// features, and the contract's defaults as limits.
type Capabilities struct {
	// VendorVersion is for people: on one line, and short.
	VendorVersion string
	// Features that core knows; others are left out.
	Features []driverv1alpha1.Feature
	// MaxUserDataBytes is never 0.
	MaxUserDataBytes int64
	// CreateSettle is how long after a create of unknown outcome its VM may still appear; never
	// negative. 0 is what a driver has promised, and never what it left out.
	CreateSettle time.Duration
	// ProviderIDPrefix is what every providerID of this driver begins with.
	ProviderIDPrefix string
	// MaxConcurrentRequests is never 0.
	MaxConcurrentRequests int
	// Deadlines are those that hold for this driver; none is 0, and none that the driver named
	// exceeds maxWait.
	Deadlines Deadlines
}

// Has says whether the driver announced a feature.
func (c Capabilities) Has(feature driverv1alpha1.Feature) bool {
	return slices.Contains(c.Features, feature)
}

// capabilitiesOf reads what a driver said; nil of one that was never reached. What this version of
// core does not know is left out.
func capabilitiesOf(info *handshakev1.GetPluginInfoResponse, said *driverv1alpha1.GetCapabilitiesResponse, cfg Config) Capabilities {
	limits := said.GetLimits()
	caps := Capabilities{
		VendorVersion:         bounded(info.GetVendorVersion(), maxReason),
		MaxUserDataBytes:      limits.GetMaxUserDataBytes(),
		CreateSettle:          contract.CreateSettle(limits),
		ProviderIDPrefix:      said.GetProviderIdPrefix(),
		MaxConcurrentRequests: int(limits.GetMaxConcurrentRequests()),
	}
	deadlines := limits.GetDeadlines()
	caps.Deadlines = Deadlines{
		Identity: boundedWait(deadlines.GetIdentity().AsDuration()),
		Status:   boundedWait(deadlines.GetStatus().AsDuration()),
		Mutation: boundedWait(deadlines.GetMutation().AsDuration()),
		ListPage: boundedWait(deadlines.GetListPage().AsDuration()),
	}.or(cfg.Deadlines)
	for _, feature := range said.GetFeatures() {
		if _, known := driverv1alpha1.Feature_name[int32(feature)]; known {
			caps.Features = append(caps.Features, feature)
		}
	}
	return caps.withDefaults(cfg)
}

// withDefaults fills in what holds for a driver that says nothing.
func (c Capabilities) withDefaults(cfg Config) Capabilities {
	if c.MaxUserDataBytes == 0 {
		c.MaxUserDataBytes = contract.DefaultMaxUserDataBytes
	}
	orDefault(&c.MaxConcurrentRequests, cfg.MaxConcurrentRequests)
	c.Deadlines = c.Deadlines.or(cfg.Deadlines)
	return c
}
