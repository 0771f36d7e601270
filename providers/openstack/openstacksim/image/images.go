package image

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Image is an image of Glance.
type Image struct {
	state.Record
	Status          string
	MinDisk, MinRAM int
	Properties      map[string]string
}

// Keys implements state.Resource.
func (i *Image) Keys() []state.Key { return []state.Key{{state.ByName, i.Name}} }

func (i *Image) view() api.Object {
	view := api.Object{
		"id": i.ID, "name": i.Name, "status": i.Status, "visibility": "public", "protected": false, "os_hidden": false, "owner": i.Project,
		"container_format": "bare", "disk_format": "raw", "checksum": Checksum, "os_hash_algo": "sha512",
		"os_hash_value": strings.Repeat("0", 128), "size": Size, "virtual_size": Size,
		"min_disk": i.MinDisk, "min_ram": i.MinRAM, "tags": append([]string{}, i.Tags...), "created_at": i.Created.Format(api.TimeForm), "updated_at": i.Updated.Format(api.TimeForm),
		"self": "/v2/images/" + i.ID, "file": "/v2/images/" + i.ID + "/file", "schema": "/v2/schemas/image",
	}
	for name, value := range i.Properties {
		view[name] = value
	}
	return view
}

// What every image here has: Size is in bytes.
const (
	Size     = 1 << 20
	Checksum = "d41d8cd98f00b204e9800998ecf8427e"
)

// The pages of Glance.
const (
	usualImages = 25
	maxImages   = 1000
)

// listImages implements GET /v2/images.
func listImages(glance *Glance, call *api.Call) (api.Reply, error) {
	limit := usualImages
	if given := call.Query.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 {
			return api.Reply{}, api.Refuse(http.StatusBadRequest, "limit param must be an integer")
		}
		limit = min(n, maxImages)
	}
	views := []api.Object{}
	passed := call.Query.Get("marker") == ""
	more := false
	for _, i := range slices.Backward(glance.Images.Ordered) {
		if !passed {
			passed = i.ID == call.Query.Get("marker")
			continue
		}
		if !i.wanted(call.Query) {
			continue
		}
		if more = len(views) == limit; more {
			break
		}
		views = append(views, i.view())
	}
	if !passed {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Image %s could not be found", call.Query.Get("marker"))
	}
	rest := maps.Clone(call.Query)
	rest.Del("marker")
	body := api.Object{"images": views, "first": imagesPath(rest), "schema": "/v2/schemas/images"}
	if len(views) > 0 && (more || len(views) == limit) {
		last, _ := views[len(views)-1]["id"].(string)
		rest.Set("marker", last)
		body["next"] = imagesPath(rest)
	}
	return api.OK(body)
}

func imagesPath(query url.Values) string {
	if len(query) == 0 {
		return "/v2/images"
	}
	return "/v2/images?" + query.Encode()
}

// wanted says whether a list that is asked for by the query has the image.
func (i *Image) wanted(query url.Values) bool {
	if slices.ContainsFunc(query["tag"], func(tag string) bool { return !slices.Contains(i.Tags, tag) }) {
		return false
	}
	view := i.view()
	for name := range query {
		if slices.Contains([]string{"limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "tag"}, name) {
			continue
		}
		wanted := query.Get(name)
		got, _ := view[name].(string)
		if among, several := strings.CutPrefix(wanted, "in:"); several {
			if !slices.Contains(strings.Split(strings.ReplaceAll(among, `"`, ""), ","), got) {
				return false
			}
			continue
		}
		if _, there := view[name]; !there || got != wanted {
			return false
		}
	}
	return true
}

// showImage implements GET /v2/images/{id}.
func showImage(glance *Glance, call *api.Call) (api.Reply, error) {
	i := glance.Images.ByID[call.Path("id")]
	if i == nil {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "No image found with ID %s", call.Path("id"))
	}
	return api.OK(i.view())
}

// listVersions implements GET / of Glance.
func listVersions(glance *Glance, call *api.Call) (api.Reply, error) {
	answer, err := showVersions(glance, call)
	answer.Status = http.StatusMultipleChoices
	return answer, err
}

// showVersions implements GET /versions.
func showVersions(_ *Glance, call *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"versions": []api.Object{{
		"id": "v2.15", "status": "CURRENT", "links": []api.Object{{"rel": "self", "href": call.Base() + "/image/v2/"}},
	}}})
}
