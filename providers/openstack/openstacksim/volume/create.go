package volume

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// volumeRequest is the body of POST /v3/{project}/volumes.
type volumeRequest struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Size        *api.Gibibytes    `json:"size"`
	Type        string            `json:"volume_type"`
	Zone        string            `json:"availability_zone"`
	Image       string            `json:"imageRef"`
	Metadata    map[string]string `json:"metadata"`
}

// malformed is what Cinder says of what it does not explain.
func malformed() error {
	return api.Refuse(http.StatusBadRequest, "The server could not comply with the request since it is either malformed or otherwise incorrect.")
}

func readVolumeRequest(call *api.Call) (*volumeRequest, error) {
	var body struct {
		Volume json.RawMessage `json:"volume"`
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(call.Body, &body); err != nil || json.Unmarshal(body.Volume, &fields) != nil {
		return nil, malformed()
	}
	if err := api.CheckNumber("size", fields["size"]); err != nil {
		return nil, err
	}
	w := &volumeRequest{}
	if err := json.Unmarshal(body.Volume, w); err != nil || w.Size == nil {
		return nil, malformed()
	}
	if size := strconv.Itoa(int(*w.Size)); *w.Size < 1 {
		return nil, api.Invalid("size", size, size+" is less than the minimum of 1")
	}
	if n := utf8.RuneCountInString(w.Name); n > api.MaxText {
		return nil, api.Refuse(http.StatusBadRequest, "Invalid input received: name has %d characters, more than 255.", n)
	}
	return w, nil
}

// createVolume implements POST /v3/{project}/volumes.
func createVolume(cinder *Cinder, call *api.Call) (api.Reply, error) {
	w, err := readVolumeRequest(call)
	if err != nil {
		return api.Reply{}, err
	}
	v := &Volume{
		Record: cinder.store.NewRecord(call.Project(), w.Name), UserID: call.Caller.UserID, Size: int(*w.Size), Zone: w.Zone, Image: w.Image, Metadata: api.OrEmpty(w.Metadata),
	}
	v.Description = w.Description
	var known bool
	if v.Type, known = cinder.TypeNamed(w.Type); !known {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "Volume type with name %s could not be found.", w.Type)
	}
	if v.Zone != "" && !slices.Contains(cinder.options.Zones, v.Zone) {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Availability zone '%s' is invalid.", v.Zone)
	}
	if w.Image != "" && cinder.glance.Images.ByID[w.Image] == nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Invalid image identifier or unable to access requested image.")
	}
	if err := checkQuota(cinder, call.Project(), v.Size); err != nil {
		return api.Reply{}, err
	}
	v.Owner = state.OwnerOfMetadata(v.Metadata)
	cinder.Add(v)
	call.Changed(v.ID)
	view := volumeView(cinder, call, v)
	view["status"], view["bootable"], view["updated_at"] = Creating, "false", nil
	delete(view, "os-vol-tenant-attr:tenant_id")
	delete(view, "volume_image_metadata")
	return api.WithStatus(http.StatusAccepted, api.Object{"volume": view})
}

// Add takes in a new volume, which is available once it is made. Nova does so, too, on the way to a
// server.
func (cinder *Cinder) Add(v *Volume) {
	if v.Zone == "" {
		v.Zone = cinder.options.Zones[0]
	}
	v.Status, v.Bootable = Available, v.Image != ""
	if cinder.options.Latency > 0 {
		v.Status = Creating
		cinder.arm(v)
	}
	cinder.Volumes.Put(v)
	cinder.store.Owners.Set(v.ID, v.Owner)
}

func (cinder *Cinder) arm(v *Volume) {
	time.AfterFunc(cinder.options.Latency, func() {
		cinder.store.Front.Lock()
		defer cinder.store.Front.Unlock()
		if cinder.store.Front.IsClosed() || cinder.Volumes.ByID[v.ID] != v || v.Status != Creating {
			return
		}
		v.Status, v.Updated = Available, testcloud.Now()
		cinder.Volumes.Put(v)
		cinder.store.Front.Report(cinder.store.Journal.Flush())
	})
}

// Attach gives a volume to a server.
func (cinder *Cinder) Attach(v *Volume, server, device string) {
	v.Status, v.Server, v.Device, v.Attached, v.Updated = InUse, server, device, testcloud.Now(), testcloud.Now()
	cinder.Volumes.Put(v)
}

// Detach takes a volume from its server: it is free.
func (cinder *Cinder) Detach(v *Volume) {
	v.Status, v.Server, v.Device, v.Updated = Available, "", "", testcloud.Now()
	cinder.Volumes.Put(v)
}
