package compute

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// HookState is the state as tests see it: what is neither building, running nor gone, nor has
// failed before it ran, is stopped.
func (s *Server) HookState() backendv1alpha1.VMState {
	if s.deleting() {
		return backendv1alpha1.VMState_VM_STATE_DELETING
	}
	switch s.VMState {
	case VMBuilding:
		return backendv1alpha1.VMState_VM_STATE_BUILDING
	case VMActive, VMResized:
		return backendv1alpha1.VMState_VM_STATE_RUNNING
	case VMError:
		if s.Launched.IsZero() {
			return backendv1alpha1.VMState_VM_STATE_FAILED
		}
	case VMDeleted:
		return backendv1alpha1.VMState_VM_STATE_GONE
	}
	return backendv1alpha1.VMState_VM_STATE_STOPPED
}

// GuestData is the user data as a guest reads it.
func (s *Server) GuestData() []byte {
	raw, err := base64.StdEncoding.DecodeString(s.UserData)
	if err != nil {
		return []byte(s.UserData)
	}
	return raw
}

// OthersTags are the metadata and tags that are not the driver's own marks.
func (s *Server) OthersTags() map[string]string {
	rest := map[string]string{}
	for _, tag := range s.Tags {
		if name, value, _ := strings.Cut(tag, "="); state.OwnerOfTag(tag) == (state.Owner{}) {
			rest[name] = value
		}
	}
	maps.Copy(rest, s.Metadata)
	for _, mark := range []string{ownership.Cluster, ownership.Machine, ownership.Namespace, ownership.Name} {
		delete(rest, mark)
	}
	return rest
}

// AddRunning takes in a server that runs already, with the ports of its interfaces.
func (nova *Nova) AddRunning(s *Server) {
	s.VMState, s.Power, s.Launched = VMActive, powerRunning, s.Created
	nova.Servers.put(s)
	_ = nova.bind(s) // the ports are there
	nova.plug(s)
	nova.Servers.touch(s)
}

// Change changes a server from outside of the API, as a hook asks for it. Errors: NOT_FOUND for an
// id that no server has, INVALID_ARGUMENT for a change that is none.
func (nova *Nova) Change(id string, change backendv1alpha1.VMChange, message string) (*Server, error) {
	s := nova.Servers.Alive.ByID[id]
	if s == nil {
		return nil, status.Error(codes.NotFound, "no VM has this id")
	}
	switch change {
	case backendv1alpha1.VMChange_VM_CHANGE_DELETE:
		nova.bury(s)
	case backendv1alpha1.VMChange_VM_CHANGE_STOP:
		s.VMState, s.TaskState, s.Power, s.Fault = VMStopped, "", powerOff, nil
	case backendv1alpha1.VMChange_VM_CHANGE_START:
		s.VMState, s.TaskState, s.Power, s.Fault = VMActive, "", powerRunning, nil
	case backendv1alpha1.VMChange_VM_CHANGE_FAIL:
		nova.fail(s, message)
	case backendv1alpha1.VMChange_VM_CHANGE_PRINT:
		s.Printed += "\n" + message
	default:
		return nil, status.Error(codes.InvalidArgument, "change: must be set")
	}
	s.Updated = testcloud.Now()
	nova.Servers.touch(s)
	return s, nil
}

// Addresses are those of a server in Kubernetes' terms.
func (nova *Nova) Addresses(s *Server) []*backendv1alpha1.VMAddress {
	var inner, outer []*backendv1alpha1.VMAddress
	byNetwork := addresses(nova, s)
	for _, name := range slices.Sorted(maps.Keys(byNetwork)) {
		for _, view := range byNetwork[name] {
			address, _ := view["addr"].(string)
			if view["OS-EXT-IPS:type"] == "floating" {
				outer = append(outer, &backendv1alpha1.VMAddress{Type: "ExternalIP", Address: address})
				continue
			}
			inner = append(inner, &backendv1alpha1.VMAddress{Type: "InternalIP", Address: address})
		}
	}
	if len(inner) == 0 {
		return nil
	}
	return append(append([]*backendv1alpha1.VMAddress{{Type: "Hostname", Address: s.Name}}, inner...), outer...)
}
