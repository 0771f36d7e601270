package volume

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/image"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// The states of a volume.
const (
	Creating  = "creating"
	Available = "available"
	InUse     = "in-use"
)

// Volume is a volume of Cinder; Size is in GiB.
type Volume struct {
	state.Record
	UserID   string            `json:"userID"`
	Size     int               `json:"size"`
	Type     string            `json:"type"`
	Zone     string            `json:"zone"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Image is what it was made of; empty: nothing.
	Image    string      `json:"image,omitempty"`
	Bootable bool        `json:"bootable,omitempty"`
	Server   string      `json:"server,omitempty"`
	Device   string      `json:"device,omitempty"`
	Attached time.Time   `json:"attached,omitzero"`
	Owner    state.Owner `json:"owner,omitzero"`
}

// Keys implements state.Resource.
func (v *Volume) Keys() []state.Key { return []state.Key{{state.ByName, v.Name}} }

// cinderTime is how Cinder writes times.
const cinderTime = "2006-01-02T15:04:05.000000"

func volumeView(cinder *Cinder, call *api.Call, v *Volume) api.Object {
	attachments := []api.Object{}
	if v.Server != "" {
		attachments = append(attachments, api.Object{
			"id": v.ID, "attachment_id": state.NamedID("attachment", v.ID+v.Server), "volume_id": v.ID, "server_id": v.Server, "host_name": nil,
			"device": v.Device, "attached_at": api.TimeOrNil(v.Attached, cinderTime),
		})
	}
	bootable := "false"
	if v.Bootable {
		bootable = "true"
	}
	view := api.Object{
		"id": v.ID, "status": v.Status, "size": v.Size, "availability_zone": v.Zone, "created_at": v.Created.Format(cinderTime),
		"updated_at": v.Updated.Format(cinderTime), "name": v.Name, "description": api.TextOrNil(v.Description), "volume_type": v.Type, "snapshot_id": nil,
		"source_volid": nil, "metadata": api.OrEmpty(v.Metadata), "links": cinderLinks(call, "volumes", v.ID), "user_id": v.UserID, "bootable": bootable,
		"encrypted": false, "replication_status": nil, "consistencygroup_id": nil, "multiattach": false, "attachments": attachments,
		"os-vol-tenant-attr:tenant_id": v.Project,
	}
	if i := cinder.glance.Images.ByID[v.Image]; i != nil {
		view["volume_image_metadata"] = api.Object{
			"image_id": i.ID, "image_name": i.Name, "container_format": "bare", "disk_format": "raw", "min_disk": strconv.Itoa(i.MinDisk),
			"min_ram": strconv.Itoa(i.MinRAM), "size": strconv.Itoa(image.Size), "checksum": image.Checksum,
		}
	}
	return view
}

func cinderLinks(call *api.Call, many, id string) []api.Object {
	path := "/" + call.Path("project") + "/" + many + "/" + id
	return []api.Object{
		{"rel": "self", "href": call.Base() + "/volume/v3" + path}, {"rel": "bookmark", "href": call.Base() + "/volume" + path},
	}
}

// findVolume finds the volume of a path.
func findVolume(cinder *Cinder, call *api.Call, id string) (*Volume, error) {
	v := cinder.Volumes.ByID[id]
	if v == nil || !call.Sees(v.Project) {
		return nil, api.Refuse(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	return v, nil
}

// listVolumes implements GET /v3/{project}/volumes and …/detail.
func listVolumes(cinder *Cinder, call *api.Call) (api.Reply, error) {
	p, err := api.ReadPage(call)
	if err != nil {
		return api.Reply{}, err
	}
	metadata := ReadMetadata(call.Query.Get("metadata"))
	before := int64(-1)
	if p.Marker != "" {
		marker, err := findVolume(cinder, call, p.Marker)
		if err != nil {
			return api.Reply{}, err
		}
		before = marker.Seq
	}
	detail := strings.HasSuffix(call.Request.URL.Path, "/detail")
	views := []api.Object{}
	for _, v := range slices.Backward(cinder.Volumes.Ordered) {
		if len(views) == p.Limit {
			break
		}
		if before >= 0 && v.Seq >= before || !v.wanted(call) || !hasMetadata(v, metadata) {
			continue
		}
		if detail {
			views = append(views, volumeView(cinder, call, v))
			continue
		}
		views = append(views, api.Object{"id": v.ID, "name": v.Name, "links": cinderLinks(call, "volumes", v.ID)})
	}
	body := api.Object{"volumes": views}
	p.Link(call, body, "volumes", views)
	return api.OK(body)
}

// wanted says whether a list has the volume, but for its metadata.
func (v *Volume) wanted(call *api.Call) bool {
	everybody := call.Admin() && api.IsTrue(call.Query.Get("all_tenants"))
	return (v.Project == call.Project() || everybody) && v.Seq <= call.Horizon() &&
		testcloud.Matches(call.Query.Get("name"), v.Name) && testcloud.Matches(call.Query.Get("status"), v.Status)
}

// ReadMetadata reads the filter of a list by metadata, which clients write as Python or as JSON.
func ReadMetadata(text string) map[string]string {
	metadata := map[string]string{}
	if json.Unmarshal([]byte(text), &metadata) != nil {
		_ = json.Unmarshal([]byte(strings.ReplaceAll(text, "'", `"`)), &metadata) // what is neither narrows nothing
	}
	return metadata
}

func hasMetadata(v *Volume, wanted map[string]string) bool {
	for name, value := range wanted {
		if v.Metadata[name] != value {
			return false
		}
	}
	return true
}

// showVolume implements GET /v3/{project}/volumes/{id}.
func showVolume(cinder *Cinder, call *api.Call) (api.Reply, error) {
	v, err := findVolume(cinder, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{"volume": volumeView(cinder, call, v)})
}

// updateVolume implements PUT /v3/{project}/volumes/{id}.
func updateVolume(cinder *Cinder, call *api.Call) (api.Reply, error) {
	v, err := findVolume(cinder, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Volume struct {
			Name        *string           `json:"name"`
			Description *string           `json:"description"`
			Metadata    map[string]string `json:"metadata"`
		} `json:"volume"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if body.Volume.Name != nil {
		v.Name = *body.Volume.Name
	}
	if body.Volume.Description != nil {
		v.Description = *body.Volume.Description
	}
	if body.Volume.Metadata != nil {
		v.Metadata = maps.Clone(body.Volume.Metadata)
		v.Owner = state.OwnerOfMetadata(v.Metadata)
		cinder.store.Owners.Set(v.ID, v.Owner)
	}
	v.Updated = testcloud.Now()
	cinder.Volumes.Put(v)
	call.Changed(v.ID)
	return api.OK(api.Object{"volume": volumeView(cinder, call, v)})
}

// deleteVolume implements DELETE /v3/{project}/volumes/{id}.
func deleteVolume(cinder *Cinder, call *api.Call) (api.Reply, error) {
	v, err := findVolume(cinder, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	if v.Status != Available {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Invalid volume: Volume status must be available or error or error_restoring or error_extending or "+
			"error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from "+
			"snapshots after volume transfer.")
	}
	cinder.Volumes.Remove(v.ID)
	call.Changed(v.ID)
	return api.WithStatus(http.StatusAccepted, nil)
}
