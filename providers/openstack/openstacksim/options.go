package openstacksim

import (
	"log/slog"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
)

// Options say how the cloud behaves. The zero value is a cloud of DefaultWorld that does everything
// at once.
type Options struct {
	// World is what exists before anybody asks for anything; the zero value stands for
	// DefaultWorld.
	World World
	// Journal is the file that keeps the cloud's state; empty: memory only. No two clouds may share
	// one.
	Journal string
	// BootLatency is how long a server stays in BUILD; DeleteLatency how long one is deleting.
	// VolumeLatency is how long a volume stays creating.
	BootLatency, DeleteLatency, VolumeLatency time.Duration
	// BindLatency is how long after POST /servers Nova sets the device_id of the ports: until then
	// a second server may be asked for with the same port, and fails later.
	BindLatency time.Duration
	// MinCallLatency and MaxCallLatency bound how long a call takes. Half of it passes before the
	// call takes effect, half of it after.
	MinCallLatency, MaxCallLatency time.Duration
	// TokenLifetime is how long a token is good; 0 stands for an hour.
	TokenLifetime time.Duration
	// Quota limits each project by kind: "vm", "port", "floatingip", "volume" as the hooks name
	// them, and "cores", "ram". A kind that is not in it, or is negative, is not limited. What a
	// hook has set goes before it.
	Quota map[string]int64
	// HostsPerZone is how many hosts each zone has, for server groups whose servers must not share
	// one; 0 stands for one.
	HostsPerZone int
	// MaxComputeAPIVersion is the highest microversion of Nova's API, such as 65 for 2.65, as older
	// releases have one; 0 stands for that of the release Zed.
	MaxComputeAPIVersion int
	// WithoutCinder leaves block storage out of the catalog.
	WithoutCinder bool
	// LaxPortPolicy lets everybody choose MAC and IP addresses in networks of other projects, as
	// few clouds do.
	LaxPortPolicy bool
	// RegionalIDs are the regions whose cloud controller manager writes the region into
	// Node.spec.providerID (OS_CCM_REGIONAL).
	RegionalIDs []string
	// Upstream, if set, are real services that do what is asked. Of the other options, only the
	// latency of calls and Log have a bearing then.
	Upstream *Upstream
	// Log gets what the cloud's owner should know; nil discards it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MaxCallLatency = max(o.MaxCallLatency, o.MinCallLatency)
	if o.TokenLifetime <= 0 {
		o.TokenLifetime = time.Hour
	}
	o.HostsPerZone = max(o.HostsPerZone, 1)
	if o.MaxComputeAPIVersion <= 0 {
		o.MaxComputeAPIVersion = int(compute.MostVersion)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.World.empty() {
		o.World = DefaultWorld()
	}
	return o
}
