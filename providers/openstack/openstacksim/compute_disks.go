package openstacksim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// diskRequest is one of block_device_mapping_v2.
type diskRequest struct {
	// BootIndex is a number, or the same as text; null and negative ones do not boot.
	BootIndex   any       `json:"boot_index"`
	UUID        string    `json:"uuid"`
	Source      string    `json:"source_type"`
	Destination string    `json:"destination_type"`
	Size        gibibytes `json:"volume_size"`
	Type        string    `json:"volume_type"`
	Ends        bool      `json:"delete_on_termination"`
	Device      string    `json:"device_name"`
}

// checkDiskSizes refuses sizes that are no numbers.
func checkDiskSizes(raw json.RawMessage) error {
	var disks []map[string]json.RawMessage
	_ = json.Unmarshal(raw, &disks) // what has another form is refused later
	for _, d := range disks {
		if err := checkNumber("volume_size", d["volume_size"]); err != nil {
			return err
		}
	}
	return nil
}

func (d diskRequest) boots() bool { return fmt.Sprint(d.BootIndex) == "0" }

// bootsFromVolume says whether the server has its root on a volume.
func bootsFromVolume(r *serverRequest) bool {
	return slices.ContainsFunc(r.Disks, func(d diskRequest) bool { return d.boots() && d.Destination == "volume" })
}

const wrongBootSequence = "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not valid."

// attachRequested gives a new server the volumes that it was asked for with, and makes those that
// there are not yet.
func (c *Cloud) attachRequested(t *turn, r *serverRequest, s *server) error {
	if err := checkDisks(t, r); err != nil {
		return err
	}
	if c.options.WithoutCinder && len(r.Disks) > 0 {
		return c.withoutCinder(r, s)
	}
	if err := c.checkVolumes(t, r); err != nil {
		return err
	}
	for n, d := range r.Disks {
		if d.Destination == "local" {
			continue
		}
		v := c.volumes.byID[d.UUID]
		if d.Source != "volume" {
			v = c.volumeFor(r, s, d)
		}
		a := attachment{ID: newID(), Volume: v.ID, Device: deviceName(n), Boot: d.boots(), Ends: d.Ends}
		c.attach(s, v, a)
		if d.boots() {
			s.Image = ""
		}
	}
	return nil
}

// withoutCinder is what becomes of a server with volumes where there is no block storage: Nova
// takes one whose volumes it would have to make, and fails then.
func (c *Cloud) withoutCinder(r *serverRequest, s *server) error {
	if slices.ContainsFunc(r.Disks, func(d diskRequest) bool { return d.Source == "volume" }) {
		return usualInternal(false)
	}
	s.Image, s.BootFault = "", "Build of instance "+s.ID+" aborted: Invalid endpoint for the block storage service."
	return nil
}

func deviceName(n int) string { return "/dev/vd" + string(rune('a'+n)) }

// checkDisks says whether the disks can be together. Clients have to name the image's disk among
// the others; Nova adds it only where there are none.
func checkDisks(t *turn, r *serverRequest) error {
	roots := 0
	for _, d := range r.Disks {
		if d.boots() {
			roots++
		}
		if d.Type != "" && t.version < volumeTypeAtBoot {
			return invalid("0", pythonic(r.raw["block_device_mapping_v2"]), "Additional properties are not allowed ('volume_type' was unexpected)")
		}
	}
	if len(r.Disks) > 0 && roots != 1 {
		return refuse(http.StatusBadRequest, wrongBootSequence)
	}
	if r.Image == "" && !bootsFromVolume(r) {
		return refuse(http.StatusBadRequest, "Missing imageRef attribute")
	}
	return nil
}

func (c *Cloud) checkVolumes(t *turn, r *serverRequest) error {
	for _, d := range r.Disks {
		if err := c.checkSource(t, d); err != nil {
			return err
		}
		if _, known := c.typeNamed(d.Type); !known {
			return refuse(http.StatusBadRequest, "Volume type %s could not be found.", d.Type)
		}
	}
	return nil
}

// checkSource says whether a disk can be made of what it is to be made of.
func (c *Cloud) checkSource(t *turn, d diskRequest) error {
	sized := d.Destination != "volume" || d.Size > 0
	switch d.Source {
	case "volume":
		v := c.volumes.byID[d.UUID]
		if v == nil || !t.sees(v.Project) {
			return refuse(http.StatusBadRequest, "Block Device Mapping is Invalid: failed to get volume %s.", d.UUID)
		}
		if v.Status != volumeAvailable {
			return notAvailable(v)
		}
		if d.boots() && !v.Bootable {
			return refuse(http.StatusBadRequest, "Block Device %s is not bootable.", v.ID)
		}
	case "image":
		if c.images.byID[d.UUID] == nil {
			return refuse(http.StatusBadRequest, "Block Device Mapping is Invalid: failed to get image %s.", d.UUID)
		}
		if !sized {
			return refuse(http.StatusBadRequest, "Images with destination_type 'volume' need to have a non-zero size specified")
		}
	case "blank":
		if !sized {
			return refuse(http.StatusBadRequest, "Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size")
		}
	}
	return nil
}

func notAvailable(v *volume) error {
	return refuse(http.StatusBadRequest, "Invalid volume: Volume %s status must be available or downloading to reserve, but the current status is %s.",
		v.ID, v.Status)
}

// volumeFor makes a volume as Nova does on the way to a server: without name and marks of its own,
// so that it counts as its server's.
func (c *Cloud) volumeFor(r *serverRequest, s *server, d diskRequest) *volume {
	v := &volume{record: c.newRecord(s.Project, ""), UserID: s.UserID, Size: int(d.Size), Metadata: map[string]string{}, Owner: s.Owner}
	v.Type, _ = c.typeNamed(d.Type) // it was checked
	v.Zone = r.Zone
	switch d.Source {
	case "blank":
		v.Name = s.ID + "-blank-vol"
	case "image":
		v.Image = d.UUID
	}
	c.makeVolume(v)
	return v
}

// attach gives a server a volume.
func (c *Cloud) attach(s *server, v *volume, a attachment) {
	s.Disks = append(slices.Clone(s.Disks), a)
	v.Status, v.Server, v.Device, v.Attached, v.Updated = volumeInUse, s.ID, a.Device, testcloud.Now(), testcloud.Now()
	c.volumes.put(v)
}

// release takes a volume from its server, which goes: the volume goes too, or is free.
func (c *Cloud) release(a attachment) {
	v := c.volumes.byID[a.Volume]
	if v == nil {
		return
	}
	if a.Ends {
		c.volumes.remove(v.ID)
		return
	}
	v.Status, v.Server, v.Device, v.Updated = volumeAvailable, "", "", testcloud.Now()
	c.volumes.put(v)
}

func (a attachment) view(t *turn, server string) object {
	view := object{"id": a.Volume, "volumeId": a.Volume, "serverId": server, "device": a.Device}
	if t.version >= 79 {
		view["delete_on_termination"] = a.Ends
	}
	if t.version >= 70 {
		view["tag"] = nil
	}
	if t.version >= 89 {
		delete(view, "id")
		view["attachment_id"], view["bdm_uuid"] = a.ID, namedID("bdm", a.ID)
	}
	return view
}

// listAttachments implements GET /servers/{id}/os-volume_attachments.
func listAttachments(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	views := []object{}
	for _, a := range s.Disks {
		views = append(views, a.view(t, s.ID))
	}
	return ok(object{"volumeAttachments": views})
}

// showAttachment implements GET /servers/{id}/os-volume_attachments/{volume}.
func showAttachment(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	for _, a := range s.Disks {
		if a.Volume == t.path("volume") {
			return ok(object{"volumeAttachment": a.view(t, s.ID)})
		}
	}
	return reply{}, refuse(http.StatusNotFound, "volume_id not found: %s", t.path("volume"))
}

// attachVolume implements POST /servers/{id}/os-volume_attachments.
func attachVolume(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Attachment struct {
			Volume string `json:"volumeId"`
			Ends   bool   `json:"delete_on_termination"`
		} `json:"volumeAttachment"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	v := c.volumes.byID[body.Attachment.Volume]
	if v == nil || !t.sees(v.Project) {
		return reply{}, refuse(http.StatusNotFound, "Volume %s could not be found.", body.Attachment.Volume)
	}
	if v.Status != volumeAvailable {
		return reply{}, notAvailable(v)
	}
	if s.VMState != vmActive && s.VMState != vmStopped {
		return reply{}, refuse(http.StatusConflict, "Cannot 'attach_volume' instance %s while it is in vm_state %s", s.ID, s.VMState)
	}
	a := attachment{ID: newID(), Volume: v.ID, Device: deviceName(len(s.Disks) + 1), Ends: body.Attachment.Ends}
	c.attach(s, v, a)
	c.touch(s)
	t.Changed(s.ID)
	return ok(object{"volumeAttachment": a.view(t, s.ID)})
}

// detachVolume implements DELETE /servers/{id}/os-volume_attachments/{volume}.
func detachVolume(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	n := slices.IndexFunc(s.Disks, func(a attachment) bool { return a.Volume == t.path("volume") })
	if n < 0 {
		return reply{}, refuse(http.StatusNotFound, "volume_id not found: %s", t.path("volume"))
	}
	if s.Disks[n].Boot {
		return reply{}, refuse(http.StatusBadRequest, "Cannot detach a root device volume")
	}
	a := s.Disks[n]
	a.Ends = false
	c.release(a)
	s.Disks = slices.Delete(slices.Clone(s.Disks), n, n+1)
	c.touch(s)
	t.Changed(s.ID)
	return with(http.StatusAccepted, nil)
}
