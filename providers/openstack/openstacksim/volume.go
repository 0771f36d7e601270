package openstacksim

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// volumeType is a type of volumes of Cinder.
type volumeType struct{ ID, Name string }

// The states of a volume.
const (
	volumeCreating  = "creating"
	volumeAvailable = "available"
	volumeInUse     = "in-use"
	volumeDeleting  = "deleting"
)

// volume is a volume of Cinder; Size is in GiB.
type volume struct {
	record
	UserID   string            `json:"userID"`
	Size     int               `json:"size"`
	Type     string            `json:"type"`
	Zone     string            `json:"zone"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Image is what it was made of; empty: nothing.
	Image    string    `json:"image,omitempty"`
	Bootable bool      `json:"bootable,omitempty"`
	Server   string    `json:"server,omitempty"`
	Device   string    `json:"device,omitempty"`
	Attached time.Time `json:"attached,omitzero"`
	Owner    owner     `json:"owner,omitzero"`
}

func (v *volume) keys() []key { return []key{{byName, v.Name}} }

// cinderTime is how Cinder writes times.
const cinderTime = "2006-01-02T15:04:05.000000"

func (c *Cloud) volumeView(t *turn, v *volume) object {
	attachments := []object{}
	if v.Server != "" {
		attachments = append(attachments, object{
			"id": v.ID, "attachment_id": namedID("attachment", v.ID+v.Server), "volume_id": v.ID, "server_id": v.Server, "host_name": nil,
			"device": v.Device, "attached_at": timeOrNil(v.Attached, cinderTime),
		})
	}
	bootable := "false"
	if v.Bootable {
		bootable = "true"
	}
	view := object{
		"id": v.ID, "status": v.Status, "size": v.Size, "availability_zone": v.Zone, "created_at": v.Created.Format(cinderTime),
		"updated_at": v.Updated.Format(cinderTime), "name": v.Name, "description": textOrNil(v.Description), "volume_type": v.Type, "snapshot_id": nil,
		"source_volid": nil, "metadata": orEmpty(v.Metadata), "links": cinderLinks(t, "volumes", v.ID), "user_id": v.UserID, "bootable": bootable,
		"encrypted": false, "replication_status": nil, "consistencygroup_id": nil, "multiattach": false, "attachments": attachments,
		"os-vol-tenant-attr:tenant_id": v.Project,
	}
	if i := c.images.byID[v.Image]; i != nil {
		view["volume_image_metadata"] = object{
			"image_id": i.ID, "image_name": i.Name, "container_format": "bare", "disk_format": "raw", "min_disk": strconv.Itoa(i.MinDisk),
			"min_ram": strconv.Itoa(i.MinRAM), "size": strconv.Itoa(imageSize), "checksum": imageChecksum,
		}
	}
	return view
}

func cinderLinks(t *turn, many, id string) []object {
	path := "/" + t.path("project") + "/" + many + "/" + id
	return []object{
		{"rel": "self", "href": t.base() + "/volume/v3" + path}, {"rel": "bookmark", "href": t.base() + "/volume" + path},
	}
}

// volume finds the volume of a path.
func (c *Cloud) volume(t *turn, id string) (*volume, error) {
	v := c.volumes.byID[id]
	if v == nil || !t.sees(v.Project) {
		return nil, refuse(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	return v, nil
}

// leastVolumeVersion is the version of Cinder's API for those who ask for none. What it has here is
// the same in all.
const leastVolumeVersion = "3.0"

// speakOfVolumes reads which version of Cinder's API a call speaks; one of another service is
// refused.
func (t *turn) speakOfVolumes() error {
	t.spoken = leastVolumeVersion
	given := t.request.Header.Get(versionHeader)
	if given == "" {
		return nil
	}
	version, ok := strings.CutPrefix(given, "volume ")
	if !ok {
		t.spoken = ""
		return malformed()
	}
	t.spoken = version
	return nil
}

// typeNamed returns the name of a type by its name or id; the first is the default.
func (c *Cloud) typeNamed(nameOrID string) (string, bool) {
	if nameOrID == "" && len(c.volumeTypes) > 0 {
		return c.volumeTypes[0].Name, true
	}
	for _, vt := range c.volumeTypes {
		if vt.ID == nameOrID || vt.Name == nameOrID {
			return vt.Name, true
		}
	}
	return "", false
}

// listVolumes implements GET /v3/{project}/volumes and …/detail.
func listVolumes(c *Cloud, t *turn) (reply, error) {
	p, err := novaPage(t)
	if err != nil {
		return reply{}, err
	}
	metadata := metadataOf(t.query.Get("metadata"))
	before := int64(-1)
	if p.marker != "" {
		marker, err := c.volume(t, p.marker)
		if err != nil {
			return reply{}, err
		}
		before = marker.Seq
	}
	detail := strings.HasSuffix(t.request.URL.Path, "/detail")
	views := []object{}
	for _, v := range slices.Backward(c.volumes.ordered) {
		if len(views) == p.limit {
			break
		}
		if before >= 0 && v.Seq >= before || !v.wanted(t) || !hasMetadata(v, metadata) {
			continue
		}
		if detail {
			views = append(views, c.volumeView(t, v))
			continue
		}
		views = append(views, object{"id": v.ID, "name": v.Name, "links": cinderLinks(t, "volumes", v.ID)})
	}
	body := object{"volumes": views}
	p.link(t, body, "volumes", views)
	return ok(body)
}

// wanted says whether a list has the volume, but for its metadata.
func (v *volume) wanted(t *turn) bool {
	everybody := t.admin() && isTrue(t.query.Get("all_tenants"))
	return (v.Project == t.project() || everybody) && v.Seq <= t.Horizon() &&
		testcloud.Matches(t.query.Get("name"), v.Name) && testcloud.Matches(t.query.Get("status"), v.Status)
}

// metadataOf reads a filter, which clients write as Python or as JSON.
func metadataOf(text string) map[string]string {
	metadata := map[string]string{}
	if json.Unmarshal([]byte(text), &metadata) != nil {
		_ = json.Unmarshal([]byte(strings.ReplaceAll(text, "'", `"`)), &metadata) // what is neither narrows nothing
	}
	return metadata
}

func hasMetadata(v *volume, wanted map[string]string) bool {
	for name, value := range wanted {
		if v.Metadata[name] != value {
			return false
		}
	}
	return true
}

// showVolume implements GET /v3/{project}/volumes/{id}.
func showVolume(c *Cloud, t *turn) (reply, error) {
	v, err := c.volume(t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(object{"volume": c.volumeView(t, v)})
}

// updateVolume implements PUT /v3/{project}/volumes/{id}.
func updateVolume(c *Cloud, t *turn) (reply, error) {
	v, err := c.volume(t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Volume struct {
			Name        *string           `json:"name"`
			Description *string           `json:"description"`
			Metadata    map[string]string `json:"metadata"`
		} `json:"volume"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	if body.Volume.Name != nil {
		v.Name = *body.Volume.Name
	}
	if body.Volume.Description != nil {
		v.Description = *body.Volume.Description
	}
	if body.Volume.Metadata != nil {
		v.Metadata = maps.Clone(body.Volume.Metadata)
		v.Owner = ownerOfMetadata(v.Metadata)
		c.own(v.ID, v.Owner)
	}
	v.Updated = testcloud.Now()
	c.volumes.put(v)
	t.Changed(v.ID)
	return ok(object{"volume": c.volumeView(t, v)})
}

// deleteVolume implements DELETE /v3/{project}/volumes/{id}.
func deleteVolume(c *Cloud, t *turn) (reply, error) {
	v, err := c.volume(t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	if v.Status != volumeAvailable {
		return reply{}, refuse(http.StatusBadRequest, "Invalid volume: Volume status must be available or error or error_restoring or error_extending or "+
			"error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from "+
			"snapshots after volume transfer.")
	}
	c.volumes.remove(v.ID)
	t.Changed(v.ID)
	return with(http.StatusAccepted, nil)
}

func (vt volumeType) view() object {
	return object{
		"id": vt.ID, "name": vt.Name, "is_public": true, "description": nil, "extra_specs": object{},
		"os-volume-type-access:is_public": true,
	}
}

// listVolumeTypes implements GET /v3/{project}/types.
func listVolumeTypes(c *Cloud, _ *turn) (reply, error) {
	views := []object{}
	for _, vt := range slices.Backward(c.volumeTypes) {
		views = append(views, vt.view())
	}
	return ok(object{"volume_types": views})
}

// showVolumeType implements GET /v3/{project}/types/{id}.
func showVolumeType(c *Cloud, t *turn) (reply, error) {
	for n, vt := range c.volumeTypes {
		if vt.ID == t.path("id") || n == 0 && t.path("id") == "default" {
			return ok(object{"volume_type": vt.view()})
		}
	}
	return reply{}, refuse(http.StatusNotFound, "Volume type %s could not be found.", t.path("id"))
}

// listCinderVersions implements GET / of Cinder.
func listCinderVersions(c *Cloud, t *turn) (reply, error) {
	answer, err := showCinderVersions(c, t)
	answer.status = http.StatusMultipleChoices
	return answer, err
}

// showCinderVersions implements GET /v3/ of Cinder.
func showCinderVersions(_ *Cloud, t *turn) (reply, error) {
	return ok(object{"versions": []object{{
		"id": "v3.0", "status": "CURRENT", "version": "3.70", "min_version": "3.0", "updated": "2022-08-31T00:00:00Z",
		"links": []object{
			{"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"}, {"rel": "self", "href": t.base() + "/volume/v3/"},
		},
		"media-types": []object{{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}},
	}}})
}

func cinderRoutes() []route {
	const at = "/volume/v3/{project}/"
	routes := []route{
		{method: "GET", pattern: "/volume/v3/{$}", operation: "ListVersions", do: showCinderVersions, open: true},
		{method: "GET", pattern: "/volume/{$}", operation: "ListVersions", do: listCinderVersions, open: true},
		{method: "GET", pattern: at + "volumes", operation: "ListVolumes", do: listVolumes},
		{method: "GET", pattern: at + "volumes/detail", operation: "ListVolumes", do: listVolumes, driver: true},
		{method: "POST", pattern: at + "volumes", operation: "CreateVolume", do: createVolume, creates: true, driver: true},
		{method: "GET", pattern: at + "volumes/{id}", operation: "GetVolume", do: showVolume, driver: true},
		{method: "PUT", pattern: at + "volumes/{id}", operation: "UpdateVolume", do: updateVolume},
		{method: "DELETE", pattern: at + "volumes/{id}", operation: "DeleteVolume", do: deleteVolume, driver: true},
		{method: "GET", pattern: at + "os-quota-sets/{target}", operation: "GetVolumeQuota", do: showVolumeQuota},
		{method: "PUT", pattern: at + "os-quota-sets/{target}", operation: "UpdateVolumeQuota", do: updateVolumeQuota},
		{method: "GET", pattern: at + "types", operation: "ListVolumeTypes", do: listVolumeTypes},
		{method: "GET", pattern: at + "types/{id}", operation: "ListVolumeTypes", do: showVolumeType},
	}
	for n := range routes {
		routes[n].service = cinder
	}
	return routes
}
