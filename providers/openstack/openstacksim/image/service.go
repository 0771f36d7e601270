package image

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Glance is the image service. The lock of its store's Front guards it.
type Glance struct {
	Images *state.Inventory[*Image]
}

// New returns a Glance without images.
func New(store *state.Store) *Glance {
	return &Glance{Images: state.NewInventory[Image]("image", store)}
}
