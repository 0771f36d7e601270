package session_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

const (
	id1 = "11111111-1111-4111-8111-111111111111"
	id2 = "22222222-2222-4222-8222-222222222222"
	id3 = "33333333-3333-4333-8333-333333333333"

	flavors       = "GET /compute/v2.1/flavors/detail"
	serverGroups  = "GET /compute/v2.1/os-server-groups"
	images        = "GET /image/v2/images"
	networks      = "GET /network/v2.0/networks"
	subnets       = "GET /network/v2.0/subnets"
	groups        = "GET /network/v2.0/security-groups"
	notFoundThere = `{"NeutronError": {"type": "NotFound", "message": "It could not be found.", "detail": ""}}`
)

// object is a resource as the cloud shows it.
type object = map[string]any

// collection answers as a service does: a list that it filters by the query, and each by its id.
func (c *cloud) collection(path, plural, singular string, all ...object) {
	write := func(w http.ResponseWriter, answer any) {
		raw, err := json.Marshal(answer)
		if err != nil {
			c.Error(err)
		}
		say(200, string(raw))(w, nil)
	}
	c.on("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		found := []object{}
		for _, one := range all {
			if matches(one, r.URL.Query()) {
				found = append(found, one)
			}
		}
		write(w, object{plural: found})
	})
	for _, one := range all {
		c.on("GET "+strings.TrimSuffix(path, "/detail")+"/"+fmt.Sprint(one["id"]), func(w http.ResponseWriter, _ *http.Request) {
			if singular == "" {
				write(w, one)
				return
			}
			write(w, object{singular: one})
		})
	}
}

// matches filters as the services do: Neutron has a list of tags, Glance a tag for each.
func matches(one object, query url.Values) bool {
	tags := query["tag"]
	if query.Has("tags") {
		tags = strings.Split(query.Get("tags"), ",")
	}
	of, _ := one["tags"].([]string)
	if slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(of, tag) }) {
		return false
	}
	for name := range query {
		value, has := one[name]
		if !has && name == "description" {
			value, has = "", true
		}
		if has && name != "tags" && fmt.Sprint(value) != query.Get(name) {
			return false
		}
	}
	return true
}

// furnish gives the cloud something of all there is.
func furnish(c *cloud) {
	c.collection("/compute/v2.1/flavors/detail", "flavors", "flavor",
		object{"id": id1, "name": "m1.small", "vcpus": 2, "ram": 4096, "disk": 20, "swap": "", "OS-FLV-EXT-DATA:ephemeral": 5, "extra_specs": object{"hw:cpu_arch": "x86_64"}},
		object{"id": "42", "name": "answer", "vcpus": 1, "ram": 512, "disk": 0, "swap": 0},
		object{"id": "7", "name": id3, "vcpus": 1, "ram": 512, "disk": 0, "swap": ""},
	)
	c.collection("/compute/v2.1/os-server-groups", "server_groups", "server_group",
		object{"id": id1, "name": "apart"}, object{"id": id2, "name": "twice"}, object{"id": id3, "name": "twice"},
	)
	c.collection("/image/v2/images", "images", "",
		object{"id": id1, "name": "ubuntu", "status": "active", "min_disk": 10, "min_ram": 512, "size": 123, "tags": []string{"golden", "noble"}},
		object{"id": id2, "name": "ubuntu", "status": "queued", "size": nil, "tags": []string{"golden"}},
		object{"id": id3, "name": "twice", "status": "active", "size": 1, "tags": []string{"noble"}},
		object{"id": "4", "name": "twice", "status": "active", "size": 1},
		object{"id": "5", "name": "withdrawn", "status": "deactivated", "size": 1},
	)
	c.collection("/network/v2.0/networks", "networks", "network",
		object{"id": id1, "name": "net", "project_id": projectID, "router:external": false, "shared": false, "description": "of workers", "tags": []string{"workers"}},
		object{"id": id2, "name": "ext", "project_id": "admin", "router:external": true, "shared": false},
		object{"id": id3, "name": "twice", "project_id": "other", "router:external": false, "shared": true},
		object{"id": "4", "name": "twice", "project_id": "other", "router:external": false, "shared": true},
	)
	c.collection("/network/v2.0/subnets", "subnets", "subnet",
		object{"id": id1, "name": "sub", "network_id": id3, "description": "first"}, object{"id": id2, "name": "twice", "network_id": id3}, object{"id": id3, "name": "twice", "network_id": id1},
	)
	c.collection("/network/v2.0/security-groups", "security_groups", "security_group",
		object{"id": id1, "name": "default", "project_id": projectID}, object{"id": id2, "name": "ssh", "project_id": projectID, "tags": []string{"open"}},
		object{"id": id3, "name": "shared", "project_id": "other", "tags": []string{"open", "wide"}}, object{"id": "4", "name": "default", "project_id": "other"},
		object{"id": "5", "name": "twice", "project_id": projectID}, object{"id": "6", "name": "twice", "project_id": projectID},
	)
}

// lookup finds an id.
type lookup = func(s *session.Session, t *testing.T, name string) (string, error)

func lookupsByKind() map[string]lookup {
	return map[string]lookup{
		"flavor": func(s *session.Session, t *testing.T, name string) (string, error) {
			f, err := s.Flavor(t.Context(), "field", name)
			return f.ID, err
		},
		"image": func(s *session.Session, t *testing.T, name string) (string, error) {
			return s.ImageID(t.Context(), "field", spec.Reference(name))
		},
		"network": func(s *session.Session, t *testing.T, name string) (string, error) {
			return s.NetworkID(t.Context(), "field", spec.Reference(name))
		},
		"external network": func(s *session.Session, t *testing.T, name string) (string, error) {
			return s.ExternalNetworkID(t.Context(), "field", name)
		},
		"subnet": func(s *session.Session, t *testing.T, name string) (string, error) {
			n, err := s.Subnet(t.Context(), "field", spec.Reference(name), "")
			return n.ID + " in " + n.NetworkID, err
		},
		"server group": func(s *session.Session, t *testing.T, name string) (string, error) {
			return s.ServerGroupID(t.Context(), "field", name)
		},
		"security group": func(s *session.Session, t *testing.T, name string) (string, error) {
			ids, err := s.SecurityGroupIDs(t.Context(), "field", []spec.Reference{spec.Reference(name)})
			return strings.Join(ids, " "), err
		},
	}
}

func TestLookups(t *testing.T) {
	for _, test := range []struct{ kind, name, want string }{
		{"flavor", "m1.small", id1},
		{"flavor", id1, id1},
		{"flavor", "42", "42"},
		{"flavor", id3, "7"},
		{"image", "ubuntu", id1},
		{"image", id1, id1},
		{"network", "net", id1},
		{"network", id3, id3},
		{"network", "ext", id2},
		{"external network", "ext", id2},
		{"external network", id2, id2},
		{"subnet", "sub", id1 + " in " + id3},
		{"subnet", id3, id3 + " in " + id1},
		{"server group", "apart", id1},
		{"server group", id2, id2},
		{"security group", "default", id1},
		{"security group", id2, id2},
		{"security group", "shared", id3},
		{"security group", id3, id3},
		{"image", `{"tags":["golden"]}`, id1},
		{"image", `{"tags":["golden","noble"]}`, id1},
		{"image", `{"name":"twice","tags":["noble"]}`, id3},
		{"network", `{"tags":["workers"]}`, id1},
		{"network", `{"description":"of workers"}`, id1},
		{"network", `{"name":"net","description":"of workers","tags":["workers"]}`, id1},
		{"subnet", `{"description":"first"}`, id1 + " in " + id3},
		{"security group", `{"tags":["open","wide"]}`, id3},
		{"security group", `{"name":"ssh","tags":["open"]}`, id2},
	} {
		t.Run(test.kind+" "+test.name, func(t *testing.T) {
			c, now := newCloud(t), newClock()
			furnish(c)
			s := c.open(now)
			find := lookupsByKind()[test.kind]
			for range 2 {
				if got, err := find(s, t, test.name); err != nil || got != test.want {
					t.Fatalf("%s, %v", got, err)
				}
			}
			asked := c.total()
			now.advance(10*time.Minute - time.Second)
			if _, err := find(s, t, test.name); err != nil || c.total() != asked {
				t.Errorf("not remembered: %v", err)
			}
			now.advance(time.Second)
			if _, err := find(s, t, test.name); err != nil || c.total() == asked {
				t.Errorf("remembered for too long: %v", err)
			}
			asked = c.total()
			s.Forget()
			if _, err := find(s, t, test.name); err != nil || c.total() == asked {
				t.Errorf("not forgotten: %v", err)
			}
		})
	}
}

func TestLookupsThatFindNothing(t *testing.T) {
	const unknown = "99999999-9999-4999-8999-999999999999"
	for _, test := range []struct{ kind, name, words string }{
		{"flavor", "nothing", `There is no flavor "nothing" that the project can see.`},
		{"flavor", unknown, `There is no flavor "` + unknown + `" that the project can see.`},
		{"flavor", "M1.SMALL", `There is no flavor "M1.SMALL"`},
		{"image", "nothing", `There is no image "nothing"`},
		{"image", "twice", `There are 2 images called "twice": give the id of one.`},
		{"image", "withdrawn", `The image "withdrawn" is not active: it is deactivated.`},
		{"image", id2, `The image "ubuntu" is not active: it is queued.`},
		{"network", "nothing", `There is no network "nothing"`},
		{"network", "twice", `There are 2 networks called "twice": give the id of one.`},
		{"network", unknown, `There is no network`},
		{"external network", "net", `There is no external network "net"`},
		{"external network", id1, `The network "net" is not external`},
		{"subnet", "nothing", `There is no subnet "nothing"`},
		{"subnet", "twice", `There are 2 subnets called "twice"`},
		{"server group", "twice", `There are 2 server groups called "twice"`},
		{"server group", unknown, `There is no server group`},
		{"security group", "nothing", `There is no security group "nothing"`},
		{"security group", "twice", `There are 2 security groups called "twice"`},
		{"image", `{"tags":["noble"]}`, "There are 2 images with the tags noble: give the id of one."},
		{"network", `{"name":"net","tags":["a","b"]}`, `There is no network "net" with the tags a, b that the project can see.`},
		{"network", `{"description":"x"}`, `There is no network with the description "x"`},
		{"security group", `{"tags":["open"]}`, "There are 2 security groups with the tags open"},
		{"flavor", "", "It names no flavor."},
		{"network", "", "It names no network."},
	} {
		t.Run(test.kind+" "+test.name, func(t *testing.T) {
			c := newCloud(t)
			furnish(c)
			s := c.open(newClock())
			find := lookupsByKind()[test.kind]
			for range 2 {
				asked := c.total()
				_, err := find(s, t, test.name)
				expect(t, err, "DEPENDENCY_NOT_FOUND", test.words)
				field := "field"
				if test.kind == "security group" {
					field = "field[0]"
				}
				expectFields(t, err, field)
				if test.name != "" && c.total() == asked {
					t.Error("remembered, though it may appear")
				}
			}
		})
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	for kind, find := range lookupsByKind() {
		c := newCloud(t)
		furnish(c)
		s := c.open(newClock())
		for _, name := range []string{"../../v2.1/servers", "a/b?c=d&limit=1", "ä ö", id1 + "/x"} {
			_, err := find(s, t, name)
			expect(t, err, "DEPENDENCY_NOT_FOUND", "There is no "+kind)
		}
		for request := range c.requests {
			if request != login && !slices.Contains([]string{flavors, serverGroups, images, networks, subnets, groups}, request) {
				t.Errorf("%s: asked %s", kind, request)
			}
		}
	}
}

func TestFailedLookupsAreExplained(t *testing.T) {
	for kind, find := range lookupsByKind() {
		t.Run(kind, func(t *testing.T) {
			for _, name := range []string{"a name", id1} {
				for _, test := range []struct {
					answer http.HandlerFunc
					reason string
				}{
					{say(503, "<html></html>"), "OUTCOME_UNKNOWN"},
					{say(403, `{"forbidden": {"code": 403, "message": "Policy doesn't allow it."}}`), "PERMISSION_MISSING"},
					{say(200, `[`), "OUTCOME_UNKNOWN"},
					{say(200, `{"flavors": 7, "flavor": 7, "images": 7, "id": 7, "networks": 7, "network": 7, "subnets": 7, "subnet": 7, "server_groups": 7, "server_group": 7, "security_groups": 7, "security_group": 7}`), "OUTCOME_UNKNOWN"},
					{say(429, "", "Retry-After", "9"), "RATE_LIMITED"},
				} {
					c := newCloud(t)
					for _, list := range []string{flavors, serverGroups, images, networks, subnets, groups} {
						c.on(list, test.answer)
						c.on(strings.TrimSuffix(list, "/detail")+"/"+id1, test.answer)
					}
					_, err := find(c.open(newClock()), t, name)
					expect(t, err, test.reason, "look up the "+strings.TrimSuffix(kind, " group"))
				}
			}
		})
	}
}

func TestManyLookupsMakeOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		furnish(c)
		s := c.open(newClock())
		answer := c.answers[flavors]
		open := make(chan struct{})
		c.on(flavors, func(w http.ResponseWriter, r *http.Request) {
			<-open
			answer(w, r)
		})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				want := session.Flavor{ID: id1, Name: "m1.small", VCPUs: 2, RAMMiB: 4096, DiskGB: 20, EphemeralGB: 5}
				got, err := s.Flavor(t.Context(), "flavor", "m1.small")
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Error(diff, err)
				}
			})
		}
		synctest.Wait()
		close(open)
		all.Wait()
		c.expectCount(flavors, 1)
	})
}

func TestWhatIsOnItsWayWhenForgottenIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		furnish(c)
		s := c.open(newClock())
		answer := c.answers[flavors]
		open := make(chan struct{})
		c.on(flavors, func(w http.ResponseWriter, r *http.Request) {
			<-open
			answer(w, r)
		})
		var all sync.WaitGroup
		find := func() {
			if _, err := s.Flavor(t.Context(), "flavor", "m1.small"); err != nil {
				t.Error(err)
			}
		}
		all.Go(find)
		synctest.Wait()
		s.Forget()
		close(open)
		all.Wait()
		find()
		find()
		c.expectCount(flavors, 2)
	})
}

func TestSecurityGroupsShareOneList(t *testing.T) {
	c := newCloud(t)
	furnish(c)
	s := c.open(newClock())
	got, err := s.SecurityGroupIDs(t.Context(), "securityGroups", []spec.Reference{"ssh", id1, "default", "ssh"})
	if diff := cmp.Diff([]string{id2, id1}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := s.SecurityGroupIDs(t.Context(), "securityGroups", nil); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	c.expectCount(groups, 1)
	_, err = s.SecurityGroupIDs(t.Context(), "securityGroups", []spec.Reference{"ssh", "nothing"})
	expect(t, err, "DEPENDENCY_NOT_FOUND", "nothing")
	expectFields(t, err, "securityGroups[1]")
}

func TestTheProjectsOnlyNetwork(t *testing.T) {
	network := func(id, name, project string, shared, external bool) object {
		return object{"id": id, "name": name, "project_id": project, "shared": shared, "router:external": external}
	}
	var many []object
	for i := range 12 {
		many = append(many, network(fmt.Sprint(i), fmt.Sprintf("net-%02d", 11-i), projectID, false, false))
	}
	for _, test := range []struct {
		name     string
		networks []object
		want     string
		words    string
	}{
		{"its own", []object{network("1", "a", projectID, false, false), network("2", "b", "other", true, false), network("3", "c", "other", false, true)}, "1", ""},
		{"the one that is shared", []object{network("2", "b", "other", true, false), network("3", "c", "other", false, true)}, "2", ""},
		{"its own, seen by an administrator", []object{network("1", "a", projectID, false, false), network("2", "b", "other", false, false)}, "1", ""},
		{"none", []object{network("3", "c", "other", false, true)}, "", "The project has no network: name one."},
		{"two", []object{network("2", "b", projectID, false, false), network("1", "a", projectID, false, false)}, "", `The project has 2 networks: name one of "a", "b".`},
		{"two that are shared", []object{network("2", "b", "other", true, false), network("1", "a", "other", true, false)}, "", `The project has 2 networks: name one of "a", "b".`},
		{"many", many, "", `The project has 12 networks: name one of "net-00", "net-01", "net-02", "net-03", "net-04", "net-05", "net-06", "net-07", "net-08", "net-09", ….`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			c.collection("/network/v2.0/networks", "networks", "network", test.networks...)
			s := c.open(newClock())
			for range 2 {
				got, err := s.DefaultNetworkID(t.Context(), "network")
				if test.words != "" {
					expect(t, err, "DEPENDENCY_NOT_FOUND", test.words)
					expectFields(t, err, "network")
					continue
				}
				if err != nil || got != test.want {
					t.Errorf("%s, %v", got, err)
				}
			}
			if test.words == "" {
				c.expectCount(networks, 1)
			}
		})
	}
}

func TestTwoFieldsOneLookup(t *testing.T) {
	c := newCloud(t)
	c.on("GET /network/v2.0/networks/"+id1, say(404, notFoundThere))
	c.collection("/network/v2.0/networks", "networks", "network")
	s := c.open(newClock())
	for _, field := range []string{"network", "ports[1].network"} {
		_, err := s.NetworkID(t.Context(), field, id1)
		expectFields(t, err, field)
	}
}
