package openstacksim

import (
	"net/http"
	"strings"
)

func (c *Cloud) tokenView(t *turn, one *token) object {
	domain := object{"id": domainID, "name": domainName}
	view := object{
		"methods": one.Methods, "audit_ids": []string{one.Audit},
		"expires_at": one.Expires.Format(keystoneTime), "issued_at": one.Issued.Format(keystoneTime),
		"user": object{"id": one.user.ID, "name": one.user.Name, "domain": domain, "password_expires_at": nil},
	}
	if one.Scoped {
		view["project"] = object{"id": one.user.ProjectID, "name": one.user.ProjectName, "domain": domain}
		view["is_domain"] = false
		view["roles"] = one.user.roles()
		view["catalog"] = c.catalog(t.base(), one.user.ProjectID)
	}
	return object{"token": view}
}

func (a *account) roles() []object {
	names := []string{"member", "reader"}
	if a.Admin {
		names = append([]string{"admin"}, names...)
	}
	var roles []object
	for _, name := range names {
		roles = append(roles, object{"id": hexID("role", name), "name": name})
	}
	return roles
}

// catalog is what Keystone tells of the services' endpoints.
func (c *Cloud) catalog(base, project string) []object {
	paths := []struct{ kind, name, path string }{
		{"identity", "keystone", "/v3"}, {"compute", "nova", "/compute/v2.1"}, {"network", "neutron", "/networking"},
		{"image", "glance", "/image"}, {"volumev3", "cinderv3", "/volume/v3/" + project}, {"block-storage", "cinder", "/volume/v3/" + project},
	}
	var catalog []object
	for _, p := range paths {
		if c.options.WithoutCinder && strings.HasPrefix(p.path, "/volume") {
			continue
		}
		var endpoints []object
		for _, region := range c.options.World.Regions {
			for _, side := range []string{"public", "internal", "admin"} {
				endpoints = append(endpoints, object{
					"id": hexID("endpoint", p.kind+region+side), "interface": side, "region": region, "region_id": region, "url": base + p.path,
				})
			}
		}
		catalog = append(catalog, object{"id": hexID("service", p.kind), "type": p.kind, "name": p.name, "endpoints": endpoints})
	}
	return catalog
}

// showCatalog implements GET /v3/auth/catalog.
func showCatalog(c *Cloud, t *turn) (reply, error) {
	return ok(object{"catalog": c.catalog(t.base(), t.project()), "links": object{"self": t.base() + "/v3/auth/catalog"}})
}

func keystoneVersion(t *turn) object {
	return object{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []object{{"rel": "self", "href": t.base() + "/v3/"}},
		"media-types": []object{{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}
}

// listKeystoneVersions implements GET /.
func listKeystoneVersions(_ *Cloud, t *turn) (reply, error) {
	answer := reply{status: http.StatusMultipleChoices, body: object{"versions": object{"values": []object{keystoneVersion(t)}}}}
	answer.set("Location", t.base()+"/v3/")
	return answer, nil
}

// showKeystoneVersion implements GET /v3.
func showKeystoneVersion(_ *Cloud, t *turn) (reply, error) {
	return ok(object{"version": keystoneVersion(t)})
}
