package openstacksim

import (
	"encoding/json"
	"net/http"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

const (
	resizeAction = "resize"
	revertAction = "revertResize"
)

// isMove says whether an operation takes a server to another host.
func isMove(operation string) bool {
	for _, a := range actions {
		if a.operation == operation {
			return a.moves
		}
	}
	return false
}

// change puts a server into another state. On its way to another host it fails as a fault wants: it
// is in ERROR then, and has still been launched.
func (c *Cloud) change(t *turn, s *server, a action, name string, argument json.RawMessage) error {
	flavor := s.Flavor
	if name == resizeAction {
		var err error
		if flavor, err = c.resized(s, argument); err != nil {
			return err
		}
	}
	if err := a.move(s); err != nil {
		return err
	}
	for _, f := range t.Struck {
		if a.moves && f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS {
			c.fail(s, f.GetError().GetMessage())
			return nil
		}
	}
	switch {
	case name == resizeAction:
		s.Resized = &resize{Before: s.Flavor}
		s.Flavor = flavor
	case name == revertAction && s.Resized != nil:
		s.Flavor = s.Resized.Before
	}
	if a.to != vmResized {
		s.Resized = nil
	}
	if a.moves {
		s.Launched = testcloud.Now()
	}
	return nil
}

// resized is the flavor that a server is asked to have.
func (c *Cloud) resized(s *server, argument json.RawMessage) (serverFlavor, error) {
	var wanted struct {
		Flavor string `json:"flavorRef"`
	}
	if err := json.Unmarshal(argument, &wanted); err != nil {
		return serverFlavor{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	f := c.flavors.byID[wanted.Flavor]
	switch {
	case f == nil:
		return serverFlavor{}, refuse(http.StatusBadRequest, "Flavor %s could not be found.", wanted.Flavor)
	case f.ID == s.Flavor.ID:
		return serverFlavor{}, refuse(http.StatusBadRequest, "When resizing, instances must change flavor!")
	}
	return serverFlavor{ID: f.ID, Name: f.Name, VCPUs: f.VCPUs, RAM: f.RAM, Disk: f.Disk, Specs: f.Specs}, nil
}

// resize is what a server was before it was resized, until somebody confirms that.
type resize struct {
	Before serverFlavor `json:"before"`
}
