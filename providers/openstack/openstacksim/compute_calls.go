package openstacksim

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// server finds the server of a path.
func (c *Cloud) server(t *turn) (*server, error) {
	s := c.alive.byID[t.path("id")]
	if s == nil || !t.sees(s.Project) {
		return nil, refuse(http.StatusNotFound, "Instance %s could not be found.", t.path("id"))
	}
	return s, nil
}

// mapped finds the server of a path as Nova's actions and tags do, which look up its cell first.
func (c *Cloud) mapped(t *turn) (*server, error) {
	s, err := c.server(t)
	if err != nil && c.anyServer(t.path("id")) == nil {
		return nil, refuse(http.StatusNotFound, "Instance %s has no mapping to a cell.", t.path("id"))
	}
	return s, err
}

// showServer implements GET /servers/{id}.
func showServer(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	return ok(object{"server": c.view(t, s, true)})
}

// deleteServer implements DELETE /servers/{id}.
func deleteServer(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	if s.Locked {
		return reply{}, refuse(http.StatusConflict, "Instance %s is locked", s.ID)
	}
	c.remove(s)
	c.touch(s)
	t.Changed(s.ID)
	return with(http.StatusNoContent, nil)
}

// updateServer implements PUT /servers/{id}: the name and the description.
func updateServer(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Server struct {
			Name        *string `json:"name"`
			Description *string `json:"description"`
		} `json:"server"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	if body.Server.Name != nil {
		s.Name = *body.Server.Name
	}
	if body.Server.Description != nil && t.version >= serverDescription {
		s.Description, s.Described = *body.Server.Description, true
	}
	s.Updated = testcloud.Now()
	c.reindex(s)
	c.touch(s)
	t.Changed(s.ID)
	return ok(object{"server": withoutExtensions(t, c.view(t, s, false))})
}

// withoutExtensions leaves out what the answer to an update does not have before 2.75.
func withoutExtensions(t *turn, view object) object {
	if t.version >= updateShowsAll {
		return view
	}
	maps.DeleteFunc(view, func(name string, _ any) bool {
		return strings.HasPrefix(name, "OS-EXT") || strings.HasPrefix(name, "OS-SRV") || strings.HasPrefix(name, "os-ext") ||
			slices.Contains([]string{"key_name", "config_drive", "security_groups"}, name)
	})
	return view
}

// showMetadata implements GET /servers/{id}/metadata.
func showMetadata(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	return ok(object{"metadata": orEmpty(s.Metadata)})
}

// replaceMetadata implements PUT /servers/{id}/metadata, and with POST adds to it.
func replaceMetadata(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	if err := checkMetadata(body.Metadata); err != nil {
		return reply{}, err
	}
	metadata := map[string]string{}
	if t.request.Method == http.MethodPost {
		metadata = cloneMap(s.Metadata)
	}
	_ = json.Unmarshal(body.Metadata, &metadata) // it was checked
	s.Metadata, s.Updated = metadata, testcloud.Now()
	c.remark(s)
	t.Changed(s.ID)
	return ok(object{"metadata": metadata})
}

// remark notes that the marks of a server may be others.
func (c *Cloud) remark(s *server) {
	c.countAlive(s, -1)
	s.Owner = ownerOfServer(s)
	c.countAlive(s, 1)
	c.own(s.ID, s.Owner)
	c.reindex(s)
	c.touch(s)
}

// deleteMetadata implements DELETE /servers/{id}/metadata/{key}.
func deleteMetadata(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	if _, there := s.Metadata[t.path("key")]; !there {
		return reply{}, refuse(http.StatusNotFound, "Metadata item was not found")
	}
	if s.VMState == vmError {
		return reply{}, refuse(http.StatusConflict, "Cannot 'delete metadata' instance %s while it is in vm_state error", s.ID)
	}
	metadata := cloneMap(s.Metadata)
	delete(metadata, t.path("key"))
	s.Metadata, s.Updated = metadata, testcloud.Now()
	c.remark(s)
	t.Changed(s.ID)
	return with(http.StatusNoContent, nil)
}

// noRoute is what Nova answers where a microversion does not have a call.
var noRoute = &refusal{status: http.StatusNotFound, message: "The resource could not be found."}

// showTags implements GET /servers/{id}/tags.
func showTags(c *Cloud, t *turn) (reply, error) {
	s, err := c.mapped(t)
	if err != nil {
		return reply{}, err
	}
	if t.version < serverTags {
		return reply{}, noRoute
	}
	return ok(object{"tags": append([]string{}, s.Tags...)})
}

// replaceTags implements PUT /servers/{id}/tags.
func replaceTags(c *Cloud, t *turn) (reply, error) {
	s, err := c.mapped(t)
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Tags json.RawMessage `json:"tags"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	if err := checkTags(body.Tags); err != nil {
		return reply{}, err
	}
	var tags []string
	_ = json.Unmarshal(body.Tags, &tags) // they were checked
	c.retag(t, s, tags)
	return ok(object{"tags": s.Tags})
}

func (c *Cloud) retag(t *turn, s *server, tags []string) {
	tags = slices.Clone(tags)
	slices.Sort(tags)
	s.Tags, s.Updated = slices.Compact(tags), testcloud.Now()
	c.remark(s)
	t.Changed(s.ID)
}

// addTag implements PUT /servers/{id}/tags/{tag}.
func addTag(c *Cloud, t *turn) (reply, error) {
	s, err := c.mapped(t)
	if err != nil {
		return reply{}, err
	}
	tag := t.path("tag")
	if slices.Contains(s.Tags, tag) {
		return with(http.StatusNoContent, nil)
	}
	if len(s.Tags) >= maxTags {
		return reply{}, refuse(http.StatusBadRequest, "The number of tags exceeded the per-server limit %d", maxTags)
	}
	c.retag(t, s, append(slices.Clone(s.Tags), tag))
	answer := reply{status: http.StatusCreated}
	answer.set("Location", t.base()+t.request.URL.Path)
	return answer, nil
}

// deleteTag implements DELETE /servers/{id}/tags/{tag}.
func deleteTag(c *Cloud, t *turn) (reply, error) {
	s, err := c.mapped(t)
	if err != nil {
		return reply{}, err
	}
	tag := t.path("tag")
	if !slices.Contains(s.Tags, tag) {
		return reply{}, refuse(http.StatusNotFound, "Instance %s has no tag '%s'", s.ID, tag)
	}
	c.retag(t, s, slices.DeleteFunc(slices.Clone(s.Tags), func(one string) bool { return one == tag }))
	return with(http.StatusNoContent, nil)
}
