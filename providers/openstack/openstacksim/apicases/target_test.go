package apicases_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// The users of the cases: each has a project of its name. The one whose requests are looked at is
// not the one that other tests use.
const (
	member   = "alt"
	stranger = "demo"
	admin    = "admin"
)

// The services, as the catalog calls their types.
const (
	identity = "identity"
	compute  = "compute"
	network  = "network"
	image    = "image"
	volume   = "volumev3"
)

// defaultVersion is the compute API's version of requests that say nothing else.
const defaultVersion = "2.67"

// target is a cloud that cases run against.
type target struct {
	// identity is the endpoint of Keystone, password that of every user.
	identity, password, region string
	// pause lies between two looks at something that takes its time.
	pause time.Duration
	// patience bounds the wait for anything: real services on a busy machine are slow.
	patience time.Duration
	// disposable: nobody needs to clean up.
	disposable bool
}

// environment is what a cloud's environment.json tells, as far as it matters here.
type environment struct {
	Release          string `json:"release"`
	IdentityEndpoint string `json:"identityEndpoint"`
	Region           string `json:"region"`
	Password         string `json:"password"`
}

// services returns the real services, and their release; it skips the test where there are none.
func services(t *testing.T) (target, string) {
	t.Helper()
	path := os.Getenv("MILLWRIGHT_OPENSTACK")
	if path == "" {
		t.Skip("MILLWRIGHT_OPENSTACK does not name a cloud's environment.json: see make test-openstack")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var e environment
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return target{identity: e.IdentityEndpoint, password: e.Password, region: e.Region, pause: 200 * time.Millisecond, patience: 5 * time.Minute}, e.Release
}

// simulator returns a new cloud in memory.
func simulator(t *testing.T, o openstacksim.Options) target {
	t.Helper()
	cloud := openstacksim.New(o)
	server := httptest.NewServer(cloud.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	return target{identity: server.URL + "/v3", password: openstacksim.Password, region: "RegionOne", pause: time.Millisecond, patience: 20 * time.Second, disposable: true}
}

// session is what a user has after a login.
type session struct {
	token, project, user string
	endpoints            map[string]string
}

// login logs a user in, unrecorded.
func (r *run) login(user string) session {
	r.Helper()
	if s, ok := r.sessions[user]; ok {
		return s
	}
	response, raw := r.send(http.MethodPost, r.identity+"/auth/tokens", nil, r.passwordLogin(user, user, r.password)) //nolint:bodyclose // send has read and closed it
	var body struct {
		Token struct {
			Project, User struct{ ID string }
			Catalog       []struct {
				Type      string
				Endpoints []struct{ Interface, Region, URL string }
			}
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil || response.StatusCode != http.StatusCreated {
		r.Fatalf("log in as %s: %d %s", user, response.StatusCode, raw)
	}
	s := session{
		token: response.Header.Get("X-Subject-Token"), project: body.Token.Project.ID, user: body.Token.User.ID,
		endpoints: map[string]string{identity: r.identity},
	}
	for _, entry := range body.Token.Catalog {
		for _, e := range entry.Endpoints {
			if e.Interface == "public" && e.Region == r.region && entry.Type != identity {
				s.endpoints[entry.Type] = strings.TrimSuffix(e.URL, "/")
			}
		}
	}
	// Not every catalog names the version.
	s.endpoints[network] += "/v2.0"
	s.endpoints[image] += "/v2"
	r.name(user+"'s project", s.project)
	r.name(user+"'s user", s.user)
	for kind, version := range map[string]string{identity: "/v3", compute: "/v2.1", network: "/v2.0", image: "/v2", volume: "/v3"} {
		root, _, _ := strings.Cut(s.endpoints[kind], version)
		r.name(kind, s.endpoints[kind])
		r.name(kind+" root", root)
	}
	r.sessions[user] = s
	return s
}

// passwordLogin is the body of a login in the domain with the id default.
func (*run) passwordLogin(user, project, password string) object {
	return loginOf(object{"methods": list{"password"}, "password": object{"user": object{
		"name": user, "domain": object{"id": "default"}, "password": password,
	}}}, object{"project": object{"name": project, "domain": object{"id": "default"}}})
}

// loginOf is the body of a login; scope may be nil.
func loginOf(identity, scope object) object {
	auth := object{"identity": identity}
	if scope != nil {
		auth["scope"] = scope
	}
	return object{"auth": auth}
}
