package compute

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
)

// diskRequest is one of block_device_mapping_v2.
type diskRequest struct {
	// BootIndex is a number, or the same as text; null and negative ones do not boot.
	BootIndex   any           `json:"boot_index"`
	UUID        string        `json:"uuid"`
	Source      string        `json:"source_type"`
	Destination string        `json:"destination_type"`
	Size        api.Gibibytes `json:"volume_size"`
	Type        string        `json:"volume_type"`
	Ends        bool          `json:"delete_on_termination"`
	Device      string        `json:"device_name"`
}

// checkDiskSizes refuses sizes that are no numbers.
func checkDiskSizes(raw json.RawMessage) error {
	var disks []map[string]json.RawMessage
	_ = json.Unmarshal(raw, &disks) // what has another form is refused later
	for _, d := range disks {
		if err := api.CheckNumber("volume_size", d["volume_size"]); err != nil {
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
func attachRequested(nova *Nova, call *api.Call, r *serverRequest, s *Server) error {
	if err := checkDisks(call, r); err != nil {
		return err
	}
	if nova.options.WithoutCinder && len(r.Disks) > 0 {
		return withoutCinder(r, s)
	}
	if err := checkVolumes(nova, call, r); err != nil {
		return err
	}
	if err := checkEphemeral(s.Flavor, r.Disks); err != nil {
		return err
	}
	for n, d := range r.Disks {
		if d.Destination == "local" {
			continue
		}
		v := nova.cinder.Volumes.ByID[d.UUID]
		if d.Source != "volume" {
			v = volumeFor(nova, r, s, d)
		}
		a := Attachment{ID: state.NewID(), Volume: v.ID, Device: deviceName(n), Boot: d.boots(), Ends: d.Ends}
		attach(nova, s, v, a)
		if d.boots() {
			s.Image = ""
		}
	}
	return nil
}

// withoutCinder is what becomes of a server with volumes where there is no block storage: Nova
// takes one whose volumes it would have to make, and fails then.
func withoutCinder(r *serverRequest, s *Server) error {
	if slices.ContainsFunc(r.Disks, func(d diskRequest) bool { return d.Source == "volume" }) {
		return api.InternalError()
	}
	s.Image, s.BootFault = "", "Build of instance "+s.ID+" aborted: Invalid endpoint for the block storage service."
	return nil
}

func deviceName(n int) string { return "/dev/vd" + string(rune('a'+n)) }

// checkDisks says whether the disks can be together. Clients have to name the image's disk among
// the others; Nova adds it only where there are none.
func checkDisks(call *api.Call, r *serverRequest) error {
	roots := 0
	for _, d := range r.Disks {
		if d.boots() {
			roots++
		}
		if d.Type != "" && call.Version < volumeTypeAtBoot {
			return api.Invalid("0", api.Pythonic(r.raw["block_device_mapping_v2"]), "Additional properties are not allowed ('volume_type' was unexpected)")
		}
	}
	if len(r.Disks) > 0 && roots != 1 {
		return api.Refuse(http.StatusBadRequest, wrongBootSequence)
	}
	if r.Image == "" && !bootsFromVolume(r) {
		return api.Refuse(http.StatusBadRequest, "Missing imageRef attribute")
	}
	return nil
}

func checkVolumes(nova *Nova, call *api.Call, r *serverRequest) error {
	for _, d := range r.Disks {
		if err := checkSource(nova, call, d); err != nil {
			return err
		}
		if _, known := nova.cinder.TypeNamed(d.Type); !known {
			return api.Refuse(http.StatusBadRequest, "Volume type %s could not be found.", d.Type)
		}
	}
	return nil
}

// checkEphemeral says whether the flavor has room for the blank disks on the host.
func checkEphemeral(f ServerFlavor, disks []diskRequest) error {
	size := 0
	for _, d := range disks {
		if d.Source == "blank" && d.Destination == "local" {
			size += cmp.Or(int(d.Size), f.Ephemeral)
		}
	}
	if size > f.Ephemeral {
		return api.Refuse(http.StatusBadRequest, "Ephemeral disks requested are larger than the instance type allows. "+
			"If no size is given in one block device mapping, flavor ephemeral size will be used.")
	}
	return nil
}

// checkSource says whether a disk can be made of what it is to be made of.
func checkSource(nova *Nova, call *api.Call, d diskRequest) error {
	sized := d.Destination != "volume" || d.Size > 0
	switch d.Source {
	case "volume":
		v := nova.cinder.Volumes.ByID[d.UUID]
		if v == nil || !call.Sees(v.Project) {
			return api.Refuse(http.StatusBadRequest, "Block Device Mapping is Invalid: failed to get volume %s.", d.UUID)
		}
		if v.Status != volume.Available {
			return notAvailable(v)
		}
		if d.boots() && !v.Bootable {
			return api.Refuse(http.StatusBadRequest, "Block Device %s is not bootable.", v.ID)
		}
	case "image":
		if nova.glance.Images.ByID[d.UUID] == nil {
			return api.Refuse(http.StatusBadRequest, "Block Device Mapping is Invalid: failed to get image %s.", d.UUID)
		}
		if !sized {
			return api.Refuse(http.StatusBadRequest, "Images with destination_type 'volume' need to have a non-zero size specified")
		}
	case "blank":
		if !sized {
			return api.Refuse(http.StatusBadRequest, "Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size")
		}
	}
	return nil
}

func notAvailable(v *volume.Volume) error {
	return api.Refuse(http.StatusBadRequest, "Invalid volume: Volume %s status must be available or downloading to reserve, but the current status is %s.",
		v.ID, v.Status)
}

// volumeFor makes a volume as Nova does on the way to a server: without name and marks of its own,
// so that it counts as its server's.
func volumeFor(nova *Nova, r *serverRequest, s *Server, d diskRequest) *volume.Volume {
	v := &volume.Volume{Record: nova.store.NewRecord(s.Project, ""), UserID: s.UserID, Size: int(d.Size), Metadata: map[string]string{}, Owner: s.Owner}
	v.Type, _ = nova.cinder.TypeNamed(d.Type) // it was checked
	v.Zone = r.Zone
	switch d.Source {
	case "blank":
		v.Name = s.ID + "-blank-vol"
	case "image":
		v.Image = d.UUID
	}
	nova.cinder.Add(v)
	return v
}
