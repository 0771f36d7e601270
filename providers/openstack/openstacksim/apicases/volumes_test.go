package apicases_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

func volumeCases() []apiCase {
	return []apiCase{
		{name: "volume: made, found, deleted", do: makeVolume},
		{name: "volume: refused", do: refusedVolumes},
		{name: "volume: a server boots from it", do: bootFromVolume},
		{name: "volume: a server boots from one that Nova makes", do: bootFromImageVolume},
		{name: "volume: disks on a server's host", do: localDisks},
		{name: "volume: servers refused for their volumes", do: refusedVolumesOfServers},
		{name: "volume: types", do: volumeTypes},
	}
}

// volume makes a volume, which the case owns, and waits until it can be used.
func (r *run) volume(name string, more object, options ...option) string {
	r.Helper()
	body := object{"name": r.unique(name), "size": 1}
	maps.Copy(body, more)
	a := r.call(http.MethodPost, volume, "/volumes", object{"volume": body}, options...)
	id := a.names(name, "volume.id")
	r.owns(volume, "/volumes/"+id)
	r.awaitVolume(id, "available")
	return id
}

func (r *run) awaitVolume(id, status string) {
	r.Helper()
	r.await("volume "+status, func() bool {
		a := r.call(http.MethodGet, volume, "/volumes/"+id, nil, quiet())
		return a.status == http.StatusOK && a.text("volume.status") == status
	})
}

func (r *run) volumeGone(id string) {
	r.Helper()
	r.await("end of the volume", func() bool {
		return r.call(http.MethodGet, volume, "/volumes/"+id, nil, quiet()).status == http.StatusNotFound
	})
}

func makeVolume(r *run) {
	id := r.volume("volume", object{"metadata": object{"machine": r.unique("uid")}, "description": "d", "imageRef": r.image(), "availability_zone": "nova"})
	r.call(http.MethodGet, volume, "/volumes/"+id, nil, only("volume.*", "volume.status", "volume.bootable", "volume.metadata", "volume.attachments", "volume.volume_type"))
	r.call(http.MethodGet, volume, "/volumes"+query("name", r.unique("volume")), nil)
	r.call(http.MethodGet, volume, "/volumes"+query("name", "nobody"), nil)
	r.call(http.MethodGet, volume, "/volumes/detail"+query("metadata", "{'machine':'"+r.unique("uid")+"'}"), nil, only("volumes.id"))
	r.call(http.MethodGet, volume, "/volumes/detail"+query("metadata", "{'machine':'nobody'}"), nil, only("volumes.id"))
	r.call(http.MethodGet, volume, "/volumes/"+id, nil, as(stranger))
	r.call(http.MethodDelete, volume, "/volumes/"+id, nil)
	r.volumeGone(id)
	r.call(http.MethodGet, volume, "/volumes/"+id, nil)
	r.call(http.MethodDelete, volume, "/volumes/"+id, nil)
}

func refusedVolumes(r *run) {
	for _, body := range []object{
		{"size": 0}, {"size": "nonsense"}, {"size": 1, "volume_type": "nothing"}, {"size": 1, "imageRef": unknown},
		{"size": 1, "availability_zone": "nowhere"}, {"size": 1, "name": strings.Repeat("n", 256)}, {},
	} {
		r.call(http.MethodPost, volume, "/volumes", object{"volume": body})
	}
	r.note("the header of another service")
	a := r.call(http.MethodGet, volume, "/volumes", nil, func(q *request) {
		q.header = map[string]string{"OpenStack-API-Version": "compute 2.67"}
	})
	r.note("status %d", a.status)
}

// bootFrom is the body of a server with block devices.
func (r *run) bootFrom(devices ...any) object {
	return r.vm("vm", object{"flavorRef": r.flavor("m1.nodisk"), "imageRef": nil, "block_device_mapping_v2": devices})
}

func bootFromVolume(r *run) {
	id := r.volume("volume", object{"imageRef": r.image()}, quiet())
	server := r.boot("server", r.bootFrom(object{
		"boot_index": 0, "uuid": id, "source_type": "volume", "destination_type": "volume", "delete_on_termination": false,
	}))
	r.settle(server, "ACTIVE")
	r.awaitVolume(id, "in-use")
	r.call(http.MethodGet, compute, "/servers/"+server, nil, only("server.image", "server.os-extended-volumes:volumes_attached"))
	r.call(http.MethodGet, compute, "/servers/"+server+"/os-volume_attachments", nil, only("volumeAttachments.*", "volumeAttachments.volumeId", "volumeAttachments.serverId"))
	r.call(http.MethodGet, volume, "/volumes/"+id, nil, only("volume.status", "volume.attachments.*", "volume.attachments.server_id"))
	r.call(http.MethodDelete, volume, "/volumes/"+id, nil)
	r.call(http.MethodDelete, compute, "/servers/"+server, nil)
	r.gone(server)
	r.awaitVolume(id, "available")
	r.call(http.MethodGet, volume, "/volumes/"+id, nil, only("volume.status", "volume.attachments"))
}

func bootFromImageVolume(r *run) {
	server := r.boot("server", r.bootFrom(object{
		"boot_index": 0, "uuid": r.image(), "source_type": "image", "destination_type": "volume", "volume_size": 2, "volume_type": "ssd", "delete_on_termination": true,
	}, object{"boot_index": -1, "source_type": "blank", "destination_type": "volume", "volume_size": 3, "delete_on_termination": true}))
	r.settle(server, "ACTIVE")
	a := r.call(http.MethodGet, compute, "/servers/"+server, nil, only("server.image", "server.os-extended-volumes:volumes_attached"))
	ids, _ := pick(a.body, "server.os-extended-volumes:volumes_attached.id").(list)
	for _, id := range ids {
		r.call(http.MethodGet, volume, "/volumes/"+id.(string), nil, only("volume.name", "volume.metadata", "volume.size", "volume.volume_type", "volume.bootable", "volume.status"))
	}
	r.call(http.MethodDelete, compute, "/servers/"+server, nil)
	r.gone(server)
	for _, id := range ids {
		r.volumeGone(id.(string))
	}
}

func refusedVolumesOfServers(r *run) {
	device := func(more object) object {
		device := object{"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": r.image(), "volume_size": 1}
		maps.Copy(device, more)
		return device
	}
	r.call(http.MethodPost, compute, "/servers", r.bootFrom(device(object{"source_type": "volume", "uuid": unknown})))
	r.call(http.MethodPost, compute, "/servers", r.bootFrom(device(object{"volume_type": "nothing"})))
	r.call(http.MethodPost, compute, "/servers", r.bootFrom(device(object{"uuid": unknown})))
	r.call(http.MethodPost, compute, "/servers", r.bootFrom(device(object{"volume_size": "nonsense"})))
	r.call(http.MethodPost, compute, "/servers", r.bootFrom(object{"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": r.image()}))
}

// localDisks are of blank ones on the host, which a flavor has room for or not.
func localDisks(r *run) {
	body := func(sizes ...int) object {
		devices := list{object{"boot_index": 0, "uuid": r.image(), "source_type": "image", "destination_type": "local", "delete_on_termination": true}}
		for _, size := range sizes {
			devices = append(devices, object{
				"boot_index": -1, "source_type": "blank", "destination_type": "local", "volume_size": size, "delete_on_termination": true,
			})
		}
		return r.vm("vm", object{"flavorRef": r.flavor("m1.ephemeral"), "block_device_mapping_v2": devices})
	}
	server := r.boot("server", body(5, 3))
	r.settle(server, "ACTIVE")
	r.call(http.MethodDelete, compute, "/servers/"+server, nil)
	r.gone(server)
	r.call(http.MethodPost, compute, "/servers", body(5, 4))
}

func volumeTypes(r *run) {
	a := r.call(http.MethodGet, volume, "/types", nil, quiet())
	kinds, _ := pick(a.body, "volume_types.name").(list)
	slices.SortFunc(kinds, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	r.note("%v", kinds)
	types, _ := pick(a.body, "volume_types.*").(list)
	r.note("%v", types[0])
}
