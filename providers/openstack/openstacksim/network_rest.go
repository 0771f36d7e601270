package openstacksim

import (
	"encoding/json"
	"net/http"
	"slices"
)

// extensions are the aliases of those that this Neutron has.
var extensions = []string{
	"agent", "allowed-address-pairs", "availability_zone", "binding", "default-subnetpools", "external-net", "extra_dhcp_opt",
	"filter-validation", "fip-port-details", "ip-substring-filtering", "network_availability_zone", "net-mtu", "pagination", "port-mac-address-override",
	"port-security", "project-id", "provider", "quota_details", "quotas", "router", "security-group", "sorting", "standard-attr-description",
	"standard-attr-revisions", "standard-attr-tag", "standard-attr-timestamp", "subnet_allocation", "trunk", "trunk-details",
}

func extensionView(alias string) object {
	return object{"alias": alias, "name": alias, "description": alias, "updated": "2016-01-01T10:00:00-00:00", "links": []object{}}
}

// listExtensions implements GET /v2.0/extensions.
func listExtensions(*Cloud, *turn) (reply, error) {
	views := []object{}
	for _, alias := range extensions {
		views = append(views, extensionView(alias))
	}
	return ok(object{"extensions": views})
}

// getExtension implements GET /v2.0/extensions/{id}.
func getExtension(_ *Cloud, t *turn) (reply, error) {
	for _, alias := range extensions {
		if alias == t.path("id") {
			return ok(object{"extension": extensionView(alias)})
		}
	}
	return reply{}, &refusal{
		status: http.StatusNotFound, outside: true, message: "The resource could not be found.", detail: "Extension with alias " + t.path("id") + " does not exist",
	}
}

func (c *Cloud) neutronLimit(project, kind string) int64 {
	if limit := c.limit(project, kind); limit >= 0 {
		return limit
	}
	if _, set := c.projectQuotas[project][kind]; set {
		return unlimited
	}
	return neutronQuotas[kind]
}

// showNetworkQuota implements GET /v2.0/quotas/{project}.
func showNetworkQuota(c *Cloud, t *turn) (reply, error) {
	if !t.sees(t.path("project")) {
		return reply{}, forbidden("rule:get_quota")
	}
	limits := object{}
	for kind := range neutronQuotas {
		limits[kind] = c.neutronLimit(t.path("project"), kind)
	}
	return ok(object{"quota": limits})
}

// showNetworkUse implements GET /v2.0/quotas/{project}/details.json.
func showNetworkUse(c *Cloud, t *turn) (reply, error) {
	project := t.path("project")
	if !t.sees(project) {
		return reply{}, forbidden("rule:get_quota")
	}
	used := map[string]int64{
		"port": c.ports.used[project], "floatingip": c.floatingIPs.used[project], "trunk": c.trunks.used[project], "network": c.networks.used[project],
		"subnet": c.subnets.used[project], "security_group": c.securityGroups.used[project], "router": c.routers.used[project],
	}
	limits := object{}
	for kind := range neutronQuotas {
		limits[kind] = object{"limit": c.neutronLimit(project, kind), "used": used[kind], "reserved": 0}
	}
	return ok(object{"quota": limits})
}

// updateNetworkQuota implements PUT /v2.0/quotas/{project}.
func updateNetworkQuota(c *Cloud, t *turn) (reply, error) {
	if !t.admin() {
		return reply{}, forbidden("rule:update_quota")
	}
	var body struct {
		Quota map[string]int64 `json:"quota"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Resource body required")
	}
	c.setQuotas(t.path("project"), body.Quota)
	t.Done = true
	return showNetworkQuota(c, t)
}

// replacePortTags implements PUT /v2.0/ports/{id}/tags.
func replacePortTags(c *Cloud, t *turn) (reply, error) {
	p, err := ports.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, refuseAs(http.StatusNotFound, "TagResourceNotFound", "Resource ports %s could not be found.", t.path("id"))
	}
	var body struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid tags body")
	}
	p.Tags = slices.Sorted(slices.Values(body.Tags))
	c.touchPort(p)
	t.Changed(p.ID)
	return ok(object{"tags": body.Tags})
}

// listNeutronResources implements GET /v2.0/.
func listNeutronResources(_ *Cloud, t *turn) (reply, error) {
	resources := []object{}
	for _, name := range []string{"network", "subnet", "subnetpool", "port"} {
		resources = append(resources, object{
			"name": name, "collection": name + "s", "links": []object{{"rel": "self", "href": t.base() + "/networking/v2.0/" + name + "s"}},
		})
	}
	return ok(object{"resources": resources})
}

// listNetworkZones implements GET /v2.0/availability_zones.
func listNetworkZones(*Cloud, *turn) (reply, error) {
	return ok(object{"availability_zones": []object{}})
}

// listNeutronVersions implements GET / of Neutron.
func listNeutronVersions(_ *Cloud, t *turn) (reply, error) {
	return ok(object{"versions": []object{{
		"id": "v2.0", "status": "CURRENT", "links": []object{{"rel": "self", "href": t.base() + "/networking/v2.0/"}},
	}}})
}
