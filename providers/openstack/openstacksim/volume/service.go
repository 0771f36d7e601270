package volume

import (
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/image"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Options say how Cinder behaves.
type Options struct {
	// Zones are the availability zones; the first is the default.
	Zones []string
	// Latency is how long a volume stays creating.
	Latency time.Duration
}

// Cinder is the block storage service. The lock of its store's Front guards it.
type Cinder struct {
	store   *state.Store
	options Options
	glance  *image.Glance

	Volumes *state.Inventory[*Volume]
	// Types are those that the world has; the first is the default.
	Types []Type
}

// New returns a Cinder without volumes and types. Its volumes can be made of the images of glance.
func New(store *state.Store, glance *image.Glance, o Options) *Cinder {
	return &Cinder{store: store, options: o, glance: glance, Volumes: state.NewInventory[Volume]("volume", store)}
}

// Journaled are the kinds of resources that Cinder has in the journal.
func (cinder *Cinder) Journaled() []state.Journaled { return []state.Journaled{cinder.Volumes} }

// Restored is told that the journal has been read: volumes that were creating go on.
func (cinder *Cinder) Restored() {
	for _, v := range cinder.Volumes.Ordered {
		cinder.store.Owners.Set(v.ID, v.Owner)
		if v.Status == Creating {
			cinder.arm(v)
		}
	}
}
