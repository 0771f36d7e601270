package compute

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// findServer finds the server of a path.
func findServer(nova *Nova, call *api.Call) (*Server, error) {
	s := nova.Servers.Alive.ByID[call.Path("id")]
	if s == nil || !call.Sees(s.Project) {
		return nil, api.Refuse(http.StatusNotFound, "Instance %s could not be found.", call.Path("id"))
	}
	return s, nil
}

// findMapped finds the server of a path as Nova's actions and tags do, which look up its cell
// first.
func findMapped(nova *Nova, call *api.Call) (*Server, error) {
	s, err := findServer(nova, call)
	if err != nil && nova.Servers.find(call.Path("id")) == nil {
		return nil, api.Refuse(http.StatusNotFound, "Instance %s has no mapping to a cell.", call.Path("id"))
	}
	return s, err
}

// showServer implements GET /servers/{id}.
func showServer(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{"server": serverView(nova, call, s, true)})
}

// deleteServer implements DELETE /servers/{id}.
func deleteServer(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	if s.Locked {
		return api.Reply{}, api.Refuse(http.StatusConflict, "Instance %s is locked", s.ID)
	}
	nova.remove(s)
	nova.Servers.touch(s)
	call.Changed(s.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}

// updateServer implements PUT /servers/{id}: the name and the description.
func updateServer(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Server struct {
			Name        *string `json:"name"`
			Description *string `json:"description"`
		} `json:"server"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if body.Server.Name != nil {
		s.Name = *body.Server.Name
	}
	if body.Server.Description != nil && call.Version >= serverDescription {
		s.Description, s.Described = *body.Server.Description, true
	}
	s.Updated = testcloud.Now()
	nova.Servers.reindex(s)
	nova.Servers.touch(s)
	call.Changed(s.ID)
	return api.OK(api.Object{"server": withoutExtensions(call, serverView(nova, call, s, false))})
}

// withoutExtensions leaves out what the answer to an update does not have before 2.75.
func withoutExtensions(call *api.Call, view api.Object) api.Object {
	if call.Version >= updateShowsAll {
		return view
	}
	maps.DeleteFunc(view, func(name string, _ any) bool {
		return strings.HasPrefix(name, "OS-EXT") || strings.HasPrefix(name, "OS-SRV") || strings.HasPrefix(name, "os-ext") ||
			slices.Contains([]string{"key_name", "config_drive", "security_groups"}, name)
	})
	return view
}

// showMetadata implements GET /servers/{id}/metadata.
func showMetadata(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{"metadata": api.OrEmpty(s.Metadata)})
}

// replaceMetadata implements PUT /servers/{id}/metadata, and with POST adds to it.
func replaceMetadata(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if err := checkMetadata(body.Metadata); err != nil {
		return api.Reply{}, err
	}
	metadata := map[string]string{}
	if call.Request.Method == http.MethodPost {
		metadata = api.Clone(s.Metadata)
	}
	_ = json.Unmarshal(body.Metadata, &metadata) // it was checked
	s.Metadata, s.Updated = metadata, testcloud.Now()
	marksChanged(nova, s)
	call.Changed(s.ID)
	return api.OK(api.Object{"metadata": metadata})
}

// marksChanged notes that the marks of a server may be others.
func marksChanged(nova *Nova, s *Server) {
	nova.Servers.count(s, -1)
	s.Owner = OwnerOf(s)
	nova.Servers.count(s, 1)
	nova.store.Owners.Set(s.ID, s.Owner)
	nova.Servers.reindex(s)
	nova.Servers.touch(s)
}

// deleteMetadata implements DELETE /servers/{id}/metadata/{key}.
func deleteMetadata(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	if _, there := s.Metadata[call.Path("key")]; !there {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "Metadata item was not found")
	}
	if s.VMState == VMError {
		return api.Reply{}, api.Refuse(http.StatusConflict, "Cannot 'delete metadata' instance %s while it is in vm_state error", s.ID)
	}
	metadata := api.Clone(s.Metadata)
	delete(metadata, call.Path("key"))
	s.Metadata, s.Updated = metadata, testcloud.Now()
	marksChanged(nova, s)
	call.Changed(s.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}

// noRoute is what Nova answers where a microversion does not have a call.
var noRoute = &api.Refusal{Status: http.StatusNotFound, Message: "The resource could not be found."}

// showTags implements GET /servers/{id}/tags.
func showTags(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findMapped(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	if call.Version < serverTags {
		return api.Reply{}, noRoute
	}
	return api.OK(api.Object{"tags": append([]string{}, s.Tags...)})
}

// replaceTags implements PUT /servers/{id}/tags.
func replaceTags(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findMapped(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Tags json.RawMessage `json:"tags"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if err := checkTags(body.Tags); err != nil {
		return api.Reply{}, err
	}
	var tags []string
	_ = json.Unmarshal(body.Tags, &tags) // they were checked
	setTags(nova, call, s, tags)
	return api.OK(api.Object{"tags": s.Tags})
}

func setTags(nova *Nova, call *api.Call, s *Server, tags []string) {
	tags = slices.Clone(tags)
	slices.Sort(tags)
	s.Tags, s.Updated = slices.Compact(tags), testcloud.Now()
	marksChanged(nova, s)
	call.Changed(s.ID)
}

// addTag implements PUT /servers/{id}/tags/{tag}.
func addTag(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findMapped(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	tag := call.Path("tag")
	if slices.Contains(s.Tags, tag) {
		return api.WithStatus(http.StatusNoContent, nil)
	}
	if len(s.Tags) >= maxTags {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "The number of tags exceeded the per-server limit %d", maxTags)
	}
	setTags(nova, call, s, append(slices.Clone(s.Tags), tag))
	answer := api.Reply{Status: http.StatusCreated}
	answer.Set("Location", call.Base()+call.Request.URL.Path)
	return answer, nil
}

// deleteTag implements DELETE /servers/{id}/tags/{tag}.
func deleteTag(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findMapped(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	tag := call.Path("tag")
	if !slices.Contains(s.Tags, tag) {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "Instance %s has no tag '%s'", s.ID, tag)
	}
	setTags(nova, call, s, slices.DeleteFunc(slices.Clone(s.Tags), func(one string) bool { return one == tag }))
	return api.WithStatus(http.StatusNoContent, nil)
}
