package connection

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

// Capabilities are what a driver last said of itself. Of one that was never reached they have no
// features, and the contract's defaults as limits.
type Capabilities struct {
	// VendorVersion is for people: on one line, and short.
	VendorVersion string
	// Manifest is what else the driver tells people of itself, at most maxFacts of it, each short.
	Manifest map[string]string
	// Features that core knows; others are left out.
	Features []driverv1alpha1.Feature
	// MaxUserDataBytes is never 0.
	MaxUserDataBytes int64
	// CreateSettle is how long after a create of unknown outcome its VM may still appear. It is
	// never negative. It is 0 only if the driver has promised that, never because the driver
	// left it out.
	CreateSettle time.Duration
	// Tags bound the tags of a VM; nil means that any are taken.
	Tags *driverv1alpha1.TagLimits
	// ProviderIDPrefix is what every providerID of this driver begins with.
	ProviderIDPrefix string
	// NoCloudController: nobody but core initialises the Nodes of this driver's VMs.
	NoCloudController bool
	// MaxConcurrentRequests is never 0.
	MaxConcurrentRequests int
	// Deadlines are those that hold for this driver; none is 0, and none that the driver named
	// exceeds wire.MaxWait.
	Deadlines Deadlines
}

// Has says whether the driver announced a feature.
func (c Capabilities) Has(feature driverv1alpha1.Feature) bool {
	return slices.Contains(c.Features, feature)
}

// CanReadConsole says whether the driver reads the consoles of its VMs.
func (c Capabilities) CanReadConsole() bool {
	return c.Has(driverv1alpha1.Feature_FEATURE_CONSOLE)
}

// maxFacts bounds a driver's manifest: it is logged with each connection.
const maxFacts = 10

// capabilitiesOf reads what a driver said; nil of one that was never reached. What this version of
// core does not know is left out.
func capabilitiesOf(info *handshakev1.GetPluginInfoResponse, said *driverv1alpha1.GetCapabilitiesResponse, cfg Config) Capabilities {
	limits := said.GetLimits()
	caps := Capabilities{
		VendorVersion:         messages.OneLine(info.GetVendorVersion(), wire.MaxReason),
		Manifest:              map[string]string{},
		MaxUserDataBytes:      limits.GetMaxUserDataBytes(),
		CreateSettle:          cfg.CreateSettle,
		Tags:                  limits.GetTags(),
		ProviderIDPrefix:      said.GetProviderIdPrefix(),
		NoCloudController:     said.GetNoCloudController(),
		MaxConcurrentRequests: int(limits.GetMaxConcurrentRequests()),
	}
	for _, fact := range slices.Sorted(maps.Keys(info.GetManifest())) {
		if len(caps.Manifest) < maxFacts {
			caps.Manifest[messages.OneLine(fact, wire.MaxReason)] = messages.OneLine(info.GetManifest()[fact], wire.MaxReason)
		}
	}
	if limits.GetCreateSettle() != nil {
		caps.CreateSettle = limits.GetCreateSettle().AsDuration()
	}
	deadlines := limits.GetDeadlines()
	caps.Deadlines = Deadlines{
		Identity: wire.BoundedWait(deadlines.GetIdentity().AsDuration()),
		Status:   wire.BoundedWait(deadlines.GetStatus().AsDuration()),
		Mutation: wire.BoundedWait(deadlines.GetMutation().AsDuration()),
		ListPage: wire.BoundedWait(deadlines.GetListPage().AsDuration()),
	}.Or(cfg.Deadlines)
	for _, feature := range said.GetFeatures() {
		if _, known := driverv1alpha1.Feature_name[int32(feature)]; known {
			caps.Features = append(caps.Features, feature)
		}
	}
	if caps.MaxUserDataBytes == 0 {
		caps.MaxUserDataBytes = contract.DefaultMaxUserDataBytes
	}
	if caps.MaxConcurrentRequests <= 0 {
		caps.MaxConcurrentRequests = cfg.MaxConcurrentRequests
	}
	return caps
}

// Deadlines are the longest that core waits, per kind of call; 0 leaves it to whoever sets one.
type Deadlines struct {
	Identity, Status, Mutation, ListPage time.Duration
}

// Or returns d with other in place of what is not set.
func (d Deadlines) Or(other Deadlines) Deadlines {
	or := func(mine, others time.Duration) time.Duration {
		if mine > 0 {
			return mine
		}
		return others
	}
	return Deadlines{
		Identity: or(d.Identity, other.Identity), Status: or(d.Status, other.Status),
		Mutation: or(d.Mutation, other.Mutation), ListPage: or(d.ListPage, other.ListPage),
	}
}
