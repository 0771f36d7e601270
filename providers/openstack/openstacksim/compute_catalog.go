package openstacksim

import (
	"encoding/json"
	"net/http"
	"slices"
)

// flavor is a size of servers.
type flavor struct {
	record
	VCPUs, RAM, Disk int
	Specs            map[string]string
}

func (f *flavor) keys() []key { return nil }

func (c *Cloud) foundFlavor(w Flavor) {
	f := &flavor{record: c.givenRecord("flavor", w.ID, w.Name, ""), VCPUs: w.VCPUs, RAM: w.RAM, Disk: w.Disk, Specs: orEmpty(w.ExtraSpecs)}
	c.flavors.put(f)
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func (f *flavor) view(t *turn) object {
	view := object{
		"id": f.ID, "name": f.Name, "ram": f.RAM, "disk": f.Disk, "vcpus": f.VCPUs, "swap": "", "OS-FLV-EXT-DATA:ephemeral": 0,
		"OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true, "rxtx_factor": json.RawMessage("1.0"), "links": novaLinks(t, "flavors", f.ID),
	}
	if t.version >= flavorDescription {
		view["description"] = nil
	}
	if t.version >= flavorExtraSpecs {
		view["extra_specs"] = f.Specs
	}
	if t.version >= 75 {
		view["swap"] = 0
	}
	return view
}

// novaLinks are the two links that Nova gives with everything.
func novaLinks(t *turn, collection, id string) []object {
	return []object{
		{"rel": "self", "href": t.base() + "/compute/v2.1/" + collection + "/" + id},
		{"rel": "bookmark", "href": t.base() + "/compute/" + collection + "/" + id},
	}
}

// listFlavors implements GET /flavors.
func listFlavors(c *Cloud, t *turn) (reply, error) {
	return c.flavorPage(t, func(f *flavor) object {
		view := object{"id": f.ID, "name": f.Name, "links": novaLinks(t, "flavors", f.ID)}
		if t.version >= flavorDescription {
			view["description"] = nil
		}
		return view
	})
}

// listFlavorsInDetail implements GET /flavors/detail.
func listFlavorsInDetail(c *Cloud, t *turn) (reply, error) {
	return c.flavorPage(t, func(f *flavor) object { return f.view(t) })
}

func (c *Cloud) flavorPage(t *turn, view func(*flavor) object) (reply, error) {
	p, err := novaPage(t)
	if err != nil {
		return reply{}, err
	}
	all := c.flavors.ordered
	if p.marker != "" {
		marker := c.flavors.byID[p.marker]
		if marker == nil {
			return reply{}, refuse(http.StatusBadRequest, "marker [%s] not found", p.marker)
		}
		after, _ := c.flavors.position(marker.Seq + 1)
		all = all[after:]
	}
	views := []object{}
	for _, f := range all[:min(p.limit, len(all))] {
		views = append(views, view(f))
	}
	body := object{"flavors": views}
	p.link(t, body, "flavors", views)
	return ok(body)
}

func (c *Cloud) flavor(id string) (*flavor, error) {
	f := c.flavors.byID[id]
	if f == nil {
		return nil, refuse(http.StatusNotFound, "Flavor %s could not be found.", id)
	}
	return f, nil
}

// showFlavor implements GET /flavors/{id}.
func showFlavor(c *Cloud, t *turn) (reply, error) {
	f, err := c.flavor(t.path("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(object{"flavor": f.view(t)})
}

// listExtraSpecs implements GET /flavors/{id}/os-extra_specs.
func listExtraSpecs(c *Cloud, t *turn) (reply, error) {
	f, err := c.flavor(t.path("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(object{"extra_specs": f.Specs})
}

// listZones implements GET /os-availability-zone.
func listZones(c *Cloud, _ *turn) (reply, error) {
	zones := []object{}
	for _, zone := range slices.Sorted(slices.Values(c.options.World.Zones)) {
		zones = append(zones, object{"zoneName": zone, "zoneState": object{"available": true}, "hosts": nil})
	}
	return ok(object{"availabilityZoneInfo": zones})
}

// listKeypairs implements GET /os-keypairs.
func listKeypairs(c *Cloud, _ *turn) (reply, error) {
	pairs := []object{}
	for _, name := range c.options.World.KeyPairs {
		pairs = append(pairs, object{"keypair": object{"name": name, "fingerprint": keyFingerprint, "public_key": "ssh-ed25519 AAAA"}})
	}
	return ok(object{"keypairs": pairs})
}

// keyFingerprint is that of every key pair.
const keyFingerprint = "00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff"

func novaVersion(c *Cloud, t *turn) object {
	return object{
		"id": "v2.1", "status": "CURRENT", "version": c.maxVersion().String(), "min_version": leastVersion.String(), "updated": "2013-07-23T11:33:21Z",
		"links": []object{
			{"rel": "self", "href": t.base() + "/compute/v2.1/"},
			{"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"},
		},
		"media-types": []object{{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}},
	}
}

// listNovaVersions implements GET / of Nova.
func listNovaVersions(c *Cloud, t *turn) (reply, error) {
	newer := novaVersion(c, t)
	delete(newer, "media-types")
	newer["links"] = []object{{"rel": "self", "href": t.base() + "/compute/v2.1/"}}
	older := object{
		"id": "v2.0", "status": "SUPPORTED", "version": "", "min_version": "", "updated": "2011-01-21T11:33:21Z",
		"links": []object{{"rel": "self", "href": t.base() + "/compute/v2/"}},
	}
	return ok(object{"versions": []object{older, newer}})
}

// showNovaVersion implements GET /v2.1/.
func showNovaVersion(c *Cloud, t *turn) (reply, error) {
	return ok(object{"version": novaVersion(c, t)})
}
