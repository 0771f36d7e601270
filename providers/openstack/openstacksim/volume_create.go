package openstacksim

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// volumeRequest is the body of POST /v3/{project}/volumes.
type volumeRequest struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Size        *gibibytes        `json:"size"`
	Type        string            `json:"volume_type"`
	Zone        string            `json:"availability_zone"`
	Image       string            `json:"imageRef"`
	Metadata    map[string]string `json:"metadata"`
}

// gibibytes is a size that clients write as a number or as text.
type gibibytes int

var number = regexp.MustCompile(`^[0-9]+$`)

// UnmarshalJSON reads both forms. What is none of them has been refused before: see checkNumber.
func (g *gibibytes) UnmarshalJSON(raw []byte) error {
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	*g = gibibytes(n)
	return err
}

// checkNumber refuses a text that is no number.
func checkNumber(field string, raw json.RawMessage) error {
	if text, isText := textOf(raw); isText && !number.MatchString(text) {
		return invalid(field, text, "'"+text+"' does not match '^[0-9]+$'")
	}
	return nil
}

// malformed is what Cinder says of what it does not explain.
func malformed() error {
	return refuse(http.StatusBadRequest, "The server could not comply with the request since it is either malformed or otherwise incorrect.")
}

func readVolumeRequest(t *turn) (*volumeRequest, error) {
	var body struct {
		Volume json.RawMessage `json:"volume"`
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(t.body, &body); err != nil || json.Unmarshal(body.Volume, &fields) != nil {
		return nil, malformed()
	}
	if err := checkNumber("size", fields["size"]); err != nil {
		return nil, err
	}
	w := &volumeRequest{}
	if err := json.Unmarshal(body.Volume, w); err != nil || w.Size == nil {
		return nil, malformed()
	}
	if size := strconv.Itoa(int(*w.Size)); *w.Size < 1 {
		return nil, invalid("size", size, size+" is less than the minimum of 1")
	}
	if n := utf8.RuneCountInString(w.Name); n > maxText {
		return nil, refuse(http.StatusBadRequest, "Invalid input received: name has %d characters, more than 255.", n)
	}
	return w, nil
}

// createVolume implements POST /v3/{project}/volumes.
func createVolume(c *Cloud, t *turn) (reply, error) {
	w, err := readVolumeRequest(t)
	if err != nil {
		return reply{}, err
	}
	v := &volume{
		record: c.newRecord(t.project(), w.Name), UserID: t.scope.UserID, Size: int(*w.Size), Zone: w.Zone, Image: w.Image, Metadata: orEmpty(w.Metadata),
	}
	v.Description = w.Description
	var known bool
	if v.Type, known = c.typeNamed(w.Type); !known {
		return reply{}, refuse(http.StatusNotFound, "Volume type with name %s could not be found.", w.Type)
	}
	if v.Zone != "" && !slices.Contains(c.options.World.Zones, v.Zone) {
		return reply{}, refuse(http.StatusBadRequest, "Availability zone '%s' is invalid.", v.Zone)
	}
	if w.Image != "" && c.images.byID[w.Image] == nil {
		return reply{}, refuse(http.StatusBadRequest, "Invalid image identifier or unable to access requested image.")
	}
	if err := c.checkVolumeQuota(t.project(), v.Size); err != nil {
		return reply{}, err
	}
	v.Owner = ownerOfMetadata(v.Metadata)
	c.makeVolume(v)
	t.Changed(v.ID)
	view := c.volumeView(t, v)
	view["status"], view["bootable"], view["updated_at"] = volumeCreating, "false", nil
	delete(view, "os-vol-tenant-attr:tenant_id")
	delete(view, "volume_image_metadata")
	return with(http.StatusAccepted, object{"volume": view})
}

// volumeUse is how much a project has.
func (c *Cloud) volumeUse(project string) map[string]int64 {
	used := map[string]int64{kindVolume: c.volumes.used[project]}
	for _, v := range c.volumes.ordered {
		if v.Project == project {
			used["gigabytes"] += int64(v.Size)
		}
	}
	return used
}

func (c *Cloud) checkVolumeQuota(project string, size int) error {
	used := c.volumeUse(project)
	if c.exceeds(project, kindVolume, used[kindVolume], 1) {
		return overLimit("VolumeLimitExceeded: Maximum number of volumes allowed (" + strconv.FormatInt(c.limit(project, kindVolume), 10) +
			") exceeded for quota 'volumes'.")
	}
	if c.exceeds(project, "gigabytes", used["gigabytes"], int64(size)) {
		return overLimit("VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested " + strconv.Itoa(size) +
			"G, quota is " + strconv.FormatInt(c.limit(project, "gigabytes"), 10) + "G and " + strconv.FormatInt(used["gigabytes"], 10) + "G has been consumed.")
	}
	return nil
}

// overLimit is how Cinder refuses: with a time to come again, which is now.
func overLimit(message string) error {
	return &refusal{status: http.StatusRequestEntityTooLarge, message: message, comeAgain: true}
}

// makeVolume takes in a new volume, which is available once it is made.
func (c *Cloud) makeVolume(v *volume) {
	if v.Zone == "" {
		v.Zone = c.options.World.Zones[0]
	}
	v.Status, v.Bootable = volumeAvailable, v.Image != ""
	if c.options.VolumeLatency > 0 {
		v.Status = volumeCreating
		c.armVolume(v)
	}
	c.volumes.put(v)
	c.own(v.ID, v.Owner)
}

func (c *Cloud) armVolume(v *volume) {
	time.AfterFunc(c.options.VolumeLatency, func() {
		c.front.Lock()
		defer c.front.Unlock()
		if c.front.IsClosed() || c.volumes.byID[v.ID] != v || v.Status != volumeCreating {
			return
		}
		v.Status, v.Updated = volumeAvailable, testcloud.Now()
		c.volumes.put(v)
		c.front.Report(c.flush())
	})
}

// showVolumeQuota implements GET /v3/{project}/os-quota-sets/{target}.
func showVolumeQuota(c *Cloud, t *turn) (reply, error) {
	set := object{"id": t.path("target")}
	for quota, kind := range volumeQuotas {
		set[quota] = c.limit(t.path("target"), kind)
	}
	return ok(object{"quota_set": set})
}

// updateVolumeQuota implements PUT /v3/{project}/os-quota-sets/{target}.
func updateVolumeQuota(c *Cloud, t *turn) (reply, error) {
	if !t.admin() {
		return reply{}, refuse(http.StatusForbidden, "Policy doesn't allow volume_extension:quotas:update to be performed.")
	}
	var body struct {
		Set map[string]any `json:"quota_set"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, malformed()
	}
	c.setQuotas(t.path("target"), limitsOf(body.Set, volumeQuotas))
	t.Done = true
	return showVolumeQuota(c, t)
}
