package apicases_test

import (
	"maps"
	"net/http"
	"net/url"
	"time"
)

// unknown is the id of nothing.
const unknown = "11111111-1111-4111-8111-111111111111"

// forEver keeps a simulated server where it is: building, or being deleted.
const forEver = 24 * time.Hour

// find returns the id of what is there from the beginning, and names it.
func (r *run) find(service, collection, name string) string {
	r.Helper()
	path := "/" + collection + "?name=" + url.QueryEscape(name)
	if collection == "flavors" {
		path = "/flavors"
	}
	key := map[string]string{"security-groups": "security_groups"}[collection]
	if key == "" {
		key = collection
	}
	things, _ := pick(r.call(http.MethodGet, service, path, nil, quiet()).body, key).(list)
	for _, thing := range things {
		if pick(thing, "name") == name {
			id, _ := pick(thing, "id").(string)
			return r.name(collection[:len(collection)-1]+" "+name, id)
		}
	}
	r.Fatalf("%s of %s: none is called %s", collection, service, name)
	return ""
}

func (r *run) flavor(name string) string { return r.find(compute, "flavors", name) }

func (r *run) image() string { return r.find(image, "images", "tiny-raw") }

// home is the network of the member, lan its subnet.
func (r *run) home() string { return r.find(network, "networks", member+"-net") }

func (r *run) lan() string { return r.find(network, "subnets", member+"-subnet") }

func (r *run) external() string { return r.find(network, "networks", "public") }

// vm is the body of an ordinary server without ports, changed by what is given. A key whose value
// is nil is left out.
func (r *run) vm(name string, more object) object {
	server := object{"name": r.unique(name), "flavorRef": r.flavor("m1.tiny"), "imageRef": r.image(), "networks": "none"}
	maps.Copy(server, more)
	maps.DeleteFunc(server, func(_ string, v any) bool { return v == nil })
	return object{"server": server}
}

// boot makes a server, which the case owns; its id is called as the server.
func (r *run) boot(name string, body object, options ...option) string {
	r.Helper()
	a := r.call(http.MethodPost, compute, "/servers", body, options...)
	id := a.names(name, "server.id")
	r.owns(compute, "/servers/"+id)
	return id
}

// running makes a server, unrecorded, and waits until it is ACTIVE.
func (r *run) running(name string, more object) string {
	r.Helper()
	id := r.boot(name, r.vm(name, more), quiet())
	r.settle(id, "ACTIVE")
	return id
}

// port makes a port in the member's network, which the case owns.
func (r *run) port(name string, more object, options ...option) string {
	r.Helper()
	a := r.call(http.MethodPost, network, "/ports", r.portBody(more), options...)
	id := a.names(name, "port.id")
	r.owns(network, "/ports/"+id)
	return id
}

func (r *run) portBody(more object) object {
	port := object{"network_id": r.home()}
	maps.Copy(port, more)
	return object{"port": port}
}

// mac is a MAC address that nobody has used.
func (r *run) mac(name string) string {
	digits := r.names.value("run")
	n := len(digits)
	last := map[string]string{"mac a": "0a", "mac b": "0b"}[name]
	return r.name(name, "0a:"+digits[n-8:n-6]+":"+digits[n-6:n-4]+":"+digits[n-4:n-2]+":"+digits[n-2:]+":"+last)
}

// query is a query of pairs, in their order.
func query(pairs ...string) string {
	text := "?"
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			text += "&"
		}
		text += pairs[i] + "=" + url.QueryEscape(pairs[i+1])
	}
	return text
}

// quota limits the member for the case's time; the kinds are those of the service.
func (r *run) quota(service string, limits object) {
	r.Helper()
	path, key := "/os-quota-sets/", "quota_set"
	if service == network {
		path, key = "/quotas/", "quota"
	}
	path += r.login(member).project
	unlimited := object{}
	for kind := range limits {
		unlimited[kind] = -1
	}
	set := func(limits object) {
		if a := r.call(http.MethodPut, service, path, object{key: limits}, as(admin), quiet()); a.status != http.StatusOK {
			r.Fatalf("set quota: %d %s", a.status, a.raw)
		}
	}
	set(limits)
	if !r.disposable {
		r.Cleanup(func() { set(unlimited) })
	}
}

// lonelyNetwork makes a network and a subnet that no router is in, which the case owns.
func (r *run) lonelyNetwork() (id, subnet string) {
	r.Helper()
	a := r.call(http.MethodPost, network, "/networks", object{"network": object{"name": r.unique("lonely")}}, quiet())
	id = a.names("lonely", "network.id")
	r.owns(network, "/networks/"+id)
	a = r.call(http.MethodPost, network, "/subnets", object{"subnet": object{"network_id": id, "ip_version": 4, "cidr": "10.77.0.0/24"}}, quiet())
	return id, a.names("lonely subnet", "subnet.id")
}
