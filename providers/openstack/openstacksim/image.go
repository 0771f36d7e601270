package openstacksim

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// image is an image of Glance.
type image struct {
	record
	Status          string
	MinDisk, MinRAM int
	Properties      map[string]string
}

func (i *image) keys() []key { return []key{{byName, i.Name}} }

func (c *Cloud) foundImage(w Image) {
	i := &image{
		record: c.givenRecord("image", w.ID, w.Name, c.projectID("admin")), Status: w.Status, MinDisk: w.MinDisk, MinRAM: w.MinRAM, Properties: w.Properties,
	}
	if i.Status == "" {
		i.Status = "active"
	}
	c.images.put(i)
}

func (i *image) view() object {
	view := object{
		"id": i.ID, "name": i.Name, "status": i.Status, "visibility": "public", "protected": false, "os_hidden": false, "owner": i.Project,
		"container_format": "bare", "disk_format": "raw", "checksum": imageChecksum, "os_hash_algo": "sha512",
		"os_hash_value": strings.Repeat("0", 128), "size": imageSize, "virtual_size": imageSize,
		"min_disk": i.MinDisk, "min_ram": i.MinRAM, "tags": []string{}, "created_at": i.Created.Format(novaTime), "updated_at": i.Updated.Format(novaTime),
		"self": "/v2/images/" + i.ID, "file": "/v2/images/" + i.ID + "/file", "schema": "/v2/schemas/image",
	}
	for name, value := range i.Properties {
		view[name] = value
	}
	return view
}

// What every image here has.
const (
	imageSize     = 1 << 20
	imageChecksum = "d41d8cd98f00b204e9800998ecf8427e"
)

// The pages of Glance.
const (
	usualImages = 25
	maxImages   = 1000
)

// listImages implements GET /v2/images.
func listImages(c *Cloud, t *turn) (reply, error) {
	limit := usualImages
	if given := t.query.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 {
			return reply{}, refuse(http.StatusBadRequest, "limit param must be an integer")
		}
		limit = min(n, maxImages)
	}
	views := []object{}
	passed := t.query.Get("marker") == ""
	more := false
	for _, i := range slices.Backward(c.images.ordered) {
		if !passed {
			passed = i.ID == t.query.Get("marker")
			continue
		}
		if !i.wanted(t.query) {
			continue
		}
		if more = len(views) == limit; more {
			break
		}
		views = append(views, i.view())
	}
	if !passed {
		return reply{}, refuse(http.StatusBadRequest, "Image %s could not be found", t.query.Get("marker"))
	}
	rest := maps.Clone(t.query)
	rest.Del("marker")
	body := object{"images": views, "first": imagesPath(rest), "schema": "/v2/schemas/images"}
	if len(views) > 0 && (more || len(views) == limit) {
		last, _ := views[len(views)-1]["id"].(string)
		rest.Set("marker", last)
		body["next"] = imagesPath(rest)
	}
	return ok(body)
}

func imagesPath(query url.Values) string {
	if len(query) == 0 {
		return "/v2/images"
	}
	return "/v2/images?" + query.Encode()
}

// wanted says whether a list that is asked for by the query has the image.
func (i *image) wanted(query url.Values) bool {
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
func showImage(c *Cloud, t *turn) (reply, error) {
	i := c.images.byID[t.path("id")]
	if i == nil {
		return reply{}, refuse(http.StatusNotFound, "No image found with ID %s", t.path("id"))
	}
	return ok(i.view())
}

// listGlanceVersions implements GET / of Glance.
func listGlanceVersions(c *Cloud, t *turn) (reply, error) {
	answer, err := showGlanceVersions(c, t)
	answer.status = http.StatusMultipleChoices
	return answer, err
}

// showGlanceVersions implements GET /versions.
func showGlanceVersions(_ *Cloud, t *turn) (reply, error) {
	return ok(object{"versions": []object{{
		"id": "v2.15", "status": "CURRENT", "links": []object{{"rel": "self", "href": t.base() + "/image/v2/"}},
	}}})
}

func glanceRoutes() []route {
	return []route{
		{service: glance, method: "GET", pattern: "/image/{$}", operation: "ListVersions", do: listGlanceVersions, open: true},
		{service: glance, method: "GET", pattern: "/image", operation: "ListVersions", do: listGlanceVersions, open: true},
		{service: glance, method: "GET", pattern: "/image/versions", operation: "ListVersions", do: showGlanceVersions, open: true},
		{service: glance, method: "GET", pattern: "/image/v2/images", operation: "ListImages", do: listImages, driver: true},
		{service: glance, method: "GET", pattern: "/image/v2/images/{id}", operation: "GetImage", do: showImage, driver: true},
	}
}
