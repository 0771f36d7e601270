package compute

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
)

// Attachment is a volume of a server.
type Attachment struct {
	ID     string `json:"id"`
	Volume string `json:"volume"`
	Device string `json:"device"`
	Boot   bool   `json:"boot,omitempty"`
	// Ends says that the volume is deleted with the server.
	Ends bool `json:"ends,omitempty"`
}

// attach gives a server a volume.
func attach(nova *Nova, s *Server, v *volume.Volume, a Attachment) {
	s.Disks = append(slices.Clone(s.Disks), a)
	nova.cinder.Attach(v, s.ID, a.Device)
}

// release takes a volume from its server, which goes: the volume goes too, or is free.
func release(nova *Nova, a Attachment) {
	v := nova.cinder.Volumes.ByID[a.Volume]
	if v == nil {
		return
	}
	if a.Ends {
		nova.cinder.Volumes.Remove(v.ID)
		return
	}
	nova.cinder.Detach(v)
}

func (a Attachment) view(call *api.Call, server string) api.Object {
	view := api.Object{"id": a.Volume, "volumeId": a.Volume, "serverId": server, "device": a.Device}
	if call.Version >= 79 {
		view["delete_on_termination"] = a.Ends
	}
	if call.Version >= 70 {
		view["tag"] = nil
	}
	if call.Version >= 89 {
		delete(view, "id")
		view["attachment_id"], view["bdm_uuid"] = a.ID, state.NamedID("bdm", a.ID)
	}
	return view
}

// listAttachments implements GET /servers/{id}/os-volume_attachments.
func listAttachments(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	views := []api.Object{}
	for _, a := range s.Disks {
		views = append(views, a.view(call, s.ID))
	}
	return api.OK(api.Object{"volumeAttachments": views})
}

// showAttachment implements GET /servers/{id}/os-volume_attachments/{volume}.
func showAttachment(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	for _, a := range s.Disks {
		if a.Volume == call.Path("volume") {
			return api.OK(api.Object{"volumeAttachment": a.view(call, s.ID)})
		}
	}
	return api.Reply{}, api.Refuse(http.StatusNotFound, "volume_id not found: %s", call.Path("volume"))
}

// attachVolume implements POST /servers/{id}/os-volume_attachments.
func attachVolume(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Attachment struct {
			Volume string `json:"volumeId"`
			Ends   bool   `json:"delete_on_termination"`
		} `json:"volumeAttachment"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	v := nova.cinder.Volumes.ByID[body.Attachment.Volume]
	if v == nil || !call.Sees(v.Project) {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "Volume %s could not be found.", body.Attachment.Volume)
	}
	if v.Status != volume.Available {
		return api.Reply{}, notAvailable(v)
	}
	if s.VMState != VMActive && s.VMState != VMStopped {
		return api.Reply{}, api.Refuse(http.StatusConflict, "Cannot 'attach_volume' instance %s while it is in vm_state %s", s.ID, s.VMState)
	}
	a := Attachment{ID: state.NewID(), Volume: v.ID, Device: deviceName(len(s.Disks) + 1), Ends: body.Attachment.Ends}
	attach(nova, s, v, a)
	nova.Servers.touch(s)
	call.Changed(s.ID)
	return api.OK(api.Object{"volumeAttachment": a.view(call, s.ID)})
}

// detachVolume implements DELETE /servers/{id}/os-volume_attachments/{volume}.
func detachVolume(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	n := slices.IndexFunc(s.Disks, func(a Attachment) bool { return a.Volume == call.Path("volume") })
	if n < 0 {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "volume_id not found: %s", call.Path("volume"))
	}
	if s.Disks[n].Boot {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Cannot detach a root device volume")
	}
	a := s.Disks[n]
	a.Ends = false
	release(nova, a)
	s.Disks = slices.Delete(slices.Clone(s.Disks), n, n+1)
	nova.Servers.touch(s)
	call.Changed(s.ID)
	return api.WithStatus(http.StatusAccepted, nil)
}
