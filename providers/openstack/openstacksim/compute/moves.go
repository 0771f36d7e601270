package compute

import (
	"encoding/json"
	"net/http"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

const (
	resizeAction = "resize"
	revertAction = "revertResize"
)

// change puts a server into another state. On its way to another host it fails as a fault wants: it
// is in ERROR then, and has still been launched.
func (nova *Nova) change(call *api.Call, s *Server, a action, name string, argument json.RawMessage) error {
	flavor := s.Flavor
	if name == resizeAction {
		var err error
		if flavor, err = resized(nova, s, argument); err != nil {
			return err
		}
	}
	if err := a.move(s); err != nil {
		return err
	}
	for _, f := range call.Struck {
		if a.moves && f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS {
			nova.fail(s, f.GetError().GetMessage())
			return nil
		}
	}
	switch {
	case name == resizeAction:
		s.Resized = &Resize{Before: s.Flavor}
		s.Flavor = flavor
	case name == revertAction && s.Resized != nil:
		s.Flavor = s.Resized.Before
	}
	if a.to != VMResized {
		s.Resized = nil
	}
	if a.moves {
		s.Launched = testcloud.Now()
	}
	return nil
}

// resized is the flavor that a server is asked to have.
func resized(nova *Nova, s *Server, argument json.RawMessage) (ServerFlavor, error) {
	var wanted struct {
		Flavor string `json:"flavorRef"`
	}
	if err := json.Unmarshal(argument, &wanted); err != nil {
		return ServerFlavor{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	f := nova.Flavors.ByID[wanted.Flavor]
	switch {
	case f == nil:
		return ServerFlavor{}, api.Refuse(http.StatusBadRequest, "Flavor %s could not be found.", wanted.Flavor)
	case f.ID == s.Flavor.ID:
		return ServerFlavor{}, api.Refuse(http.StatusBadRequest, "When resizing, instances must change flavor!")
	}
	return FlavorOf(f), nil
}

// Resize is what a server was before it was resized, until somebody confirms that.
type Resize struct {
	Before ServerFlavor `json:"before"`
}
