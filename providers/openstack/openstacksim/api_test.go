package openstacksim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// apiCase is a call and what the real service answers to it.
type apiCase struct {
	name, method, path, body string
	status                   int
	// says is within the answer.
	says string
}

func (w *world) check(cases []apiCase) {
	w.Helper()
	for _, one := range cases {
		got := w.call(one.method, one.path, one.body)
		if got.status != one.status || !strings.Contains(got.raw, one.says) {
			w.Errorf("%s: %d %.2000s", one.name, got.status, got.raw)
		}
	}
}

const nobody = "11111111-1111-4111-8111-111111111111"

func TestNovaRefuses(t *testing.T) {
	w := open(t, Options{})
	server := func(changes string) string {
		attributes := map[string]string{
			"name": `"n"`, "imageRef": `"` + imageID(w) + `"`, "flavorRef": `"` + flavorID("m1.tiny") + `"`, "networks": `"none"`,
		}
		hints := ""
		for change := range strings.SplitSeq(changes, ";") {
			name, value, _ := strings.Cut(change, "=")
			switch {
			case name == "hint":
				hints = `, "os:scheduler_hints": {"group": ` + value + `}`
			case name == "beside":
				hints = `, "group": ` + value
			case value == "":
				delete(attributes, name)
			default:
				attributes[name] = value
			}
		}
		var texts []string
		for name, value := range attributes {
			texts = append(texts, `"`+name+`": `+value)
		}
		return `{"server": {` + strings.Join(texts, ", ") + `}` + hints + `}`
	}
	long := strings.Repeat("x", 256)
	var cases []apiCase
	for _, one := range []struct {
		name, changes string
		status        int
		says          string
	}{
		{"unknown flavor", `flavorRef="nonsense"`, 400, `{"badRequest":{"code":400,"message":"Flavor nonsense could not be found."}}`},
		{"unknown image", `imageRef="` + nobody + `"`, 400, "Can not find requested image"},
		{"malformed image", `imageRef="nonsense"`, 400, "Invalid input for field/attribute imageRef. Value: nonsense. 'nonsense' is not valid under any of the given schemas"},
		{"no image", `imageRef=`, 400, "Missing imageRef attribute"},
		{"unknown network", `networks=[{"uuid": "` + nobody + `"}]`, 400, "Network " + nobody + " could not be found."},
		{"malformed network", `networks=[{"uuid": "nonsense"}]`, 400, "Value: [{'uuid': 'nonsense'}]. [{'uuid': 'nonsense'}] is not valid under any of the given schemas"},
		{"external network", `networks=[{"uuid": "` + w.externalID() + `"}]`, 403, "It is not allowed to create an interface on external network"},
		{"unknown port", `networks=[{"port": "` + nobody + `"}]`, 400, "Port id " + nobody + " could not be found."},
		{"no networks", `networks=`, 400, "'networks' is a required property"},
		{"any network", `networks="auto"`, 409, `{"conflictingRequest":{"code":409,"message":"Multiple possible networks found, use a Network ID to be more specific."}}`},
		{"unknown security group", `security_groups=[{"name": "nothing"}]`, 400, "Unable to find security_group with name or id 'nothing'"},
		{"unknown zone", `availability_zone="nowhere"`, 400, "The requested availability zone is not available"},
		{"unknown group", `hint="` + nobody + `"`, 400, "Instance group " + nobody + " could not be found."},
		{"name of a group", `hint="nonsense"`, 400, "Invalid input for field/attribute group. Value: nonsense. 'nonsense' is not a 'uuid'"},
		{"something beside the server", `beside="x"`, 400, `"message":"Additional properties are not allowed ('group' was unexpected)"`},
		{"unknown key", `key_name="k"`, 400, "Invalid key_name provided."},
		{"too much user data", `user_data="` + strings.Repeat("x", 65536) + `"`, 400, "is too long"},
		{"user data that cannot be decoded", `user_data="xxxxx"`, 400, "Value: xxxxx. 'xxxxx' is not a 'base64'"},
		{"as much user data as goes", `user_data="` + strings.Repeat("x", 65532) + `"`, 202, "adminPass"},
		{"51 tags", `tags=["` + strings.Repeat(`t", "`, 50) + `t"]`, 400, "Invalid input for field/attribute tags. Value: ['t', "},
		{"long tag", `tags=["` + long[:61] + `"]`, 400, "Invalid input for field/attribute 0. Value: xxx"},
		{"tag with a comma", `tags=["a,b"]`, 400, "Invalid input for field/attribute 0. Value: a,b. 'a,b' does not match '^[^,/]*$'"},
		{"empty tag", `tags=[""]`, 400, "'' is too short"},
		{"long metadata", `metadata={"a": "` + long + `"}`, 400, "Invalid input for field/attribute a. Value: xxx"},
		{"metadata that is no text", `metadata={"a": 1}`, 400, "Invalid input for field/attribute a. Value: 1. 1 is not of type 'string'"},
		{"metadata with a slash", `metadata={"a/b": "v"}`, 400, "Value: {'a/b': 'v'}. 'a/b' does not match any of the regexes: '^[a-zA-Z0-9-_:. ]{1,255}$'"},
		{"long name", `name="` + long + `"`, 400, "Invalid input for field/attribute name. Value: xxx"},
		{"empty name", `name=""`, 400, "Invalid input for field/attribute name. Value: . '' is too short"},
		{"blank in front", `name=" a"`, 400, `"message":"An invalid 'name' value was provided. The name must be: printable characters. Can not start or end with whitespace."`},
		{"name with a slash", `name="a/b"`, 202, "adminPass"},
		{"long description", `description="` + long + `"`, 400, "Invalid input for field/attribute description. Value: xxx"},
		{"unknown attribute", `nonsense=1`, 400, "Additional properties are not allowed ('nonsense' was unexpected)"},
		{"flavor without a disk", `flavorRef="` + flavorID("m1.nodisk") + `"`, 403, "Only volume-backed servers are allowed for flavors with zero disk."},
	} {
		cases = append(cases, apiCase{one.name, "POST", "/compute/v2.1/servers", server(one.changes), one.status, one.says})
	}
	var much []string
	for n := range 129 {
		much = append(much, fmt.Sprintf(`"k%d": "v"`, n))
	}
	cases = append(cases, apiCase{"129 metadata", "POST", "/compute/v2.1/servers", server("metadata={" + strings.Join(much, ", ") + "}"), 403, "Maximum number of metadata items exceeds 128"})
	w.check(cases)
}

func TestNovaLists(t *testing.T) {
	w := open(t, Options{})
	w.check([]apiCase{
		{"limit below zero", "GET", "/compute/v2.1/servers?limit=-1", "", 400, "Invalid input for query parameters limit. Value: -1. '-1' does not match '^[0-9]*$'"},
		{"limit of zero", "GET", "/compute/v2.1/servers?limit=0", "", 200, `{"servers":[]}`},
		{"unknown marker", "GET", "/compute/v2.1/servers?marker=" + nobody, "", 400, "marker [" + nobody + "] not found"},
		{"name that is no expression", "GET", "/compute/v2.1/servers?name=(", "", 400, "Invalid input for query parameters name. Value: (. '(' is not a 'regex'"},
		{"unknown status", "GET", "/compute/v2.1/servers?status=NONSENSE", "", 400, "Invalid status value"},
		{"deleted ones", "GET", "/compute/v2.1/servers?status=DELETED", "", 403, "Only administrators may list deleted instances"},
		{"empty tags", "GET", "/compute/v2.1/servers?tags-any=", "", 400, "Invalid input for query parameters tags-any. Value: . '' is not a 'regex'"},
		{"all projects", "GET", "/compute/v2.1/servers?all_tenants=1", "", 403, "Policy doesn't allow os_compute_api:servers:index:get_all_tenants to be performed."},
		{"time that is none", "GET", "/compute/v2.1/servers/detail?changes-since=nonsense", "", 400, "'nonsense' is not a 'date-time'"},
		{"unknown server", "GET", "/compute/v2.1/servers/" + nobody, "", 404, `{"itemNotFound":{"code":404,"message":"Instance ` + nobody + ` could not be found."}}`},
		{"unknown flavor", "GET", "/compute/v2.1/flavors/m1.small", "", 404, "Flavor m1.small could not be found."},
		{"unknown group", "GET", "/compute/v2.1/os-server-groups/nonsense", "", 404, "Instance group nonsense could not be found."},
		{"group without policy", "POST", "/compute/v2.1/os-server-groups", `{"server_group": {"name": "g"}}`, 400, "Value: {'name': 'g'}. 'policy' is a required property"},
		{"zones", "GET", "/compute/v2.1/os-availability-zone", "", 200, `"zoneName":"dbl1"`},
		{"no such path", "GET", "/compute/v2.1/nonsense", "", 404, "The resource could not be found."},
	})
}

func TestMicroversions(t *testing.T) {
	w := open(t, Options{})
	_, server := w.machine("a")
	for _, test := range []struct {
		name, header, value string
		status              int
		spoken              string
		has, hasNot         string
	}{
		{"none", api.VersionHeader, "", 200, "2.1", `"flavor":{"id"`, `"tags"`},
		{"old header", api.LegacyVersionHeader, "2.26", 200, "2.26", `"tags"`, `"original_name"`},
		{"flavor within", api.VersionHeader, "compute 2.47", 200, "2.47", `"original_name":"m1.tiny"`, `"trusted_image_certificates"`},
		{"groups", api.VersionHeader, "compute 2.71", 200, "2.71", `"server_groups"`, `"locked_reason"`},
		{"latest", api.VersionHeader, "compute latest", 200, "2.93", `"OS-EXT-SRV-ATTR:hostname"`, "nonsense"},
		{"of another service", api.VersionHeader, "volume 3.60", 200, "2.1", `"id"`, `"tags"`},
		{"too new", api.VersionHeader, "compute 2.999", 406, "2.999", "Version 2.999 is not supported by the API. Minimum is 2.1 and maximum is 2.93.", "server"},
		{"nonsense", api.VersionHeader, "compute nonsense", 400, "", "API Version String nonsense is of invalid format. Must be of format MajorNum.MinorNum.", "server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := w.call("GET", "/compute/v2.1/servers/"+server, "", api.VersionHeader, "", test.header, test.value)
			if got.status != test.status || !strings.Contains(got.raw, test.has) || strings.Contains(got.raw, test.hasNot) {
				t.Errorf("%d %s", got.status, got.raw)
			}
			if spoken := got.header.Get(api.LegacyVersionHeader); spoken != test.spoken {
				t.Errorf("the answer speaks %q", spoken)
			}
		})
	}
}

func TestNeutronRefuses(t *testing.T) {
	w := open(t, Options{})
	on := `"network_id": "` + networkID(w) + `"`
	shared := `"network_id": "` + w.given("admin", "shared") + `"`
	long := strings.Repeat("x", 256)
	var cases []apiCase
	for _, one := range []struct {
		name, port string
		status     int
		says       string
	}{
		{"unknown network", `"network_id": "` + nobody + `"`, 404, `{"NeutronError":{"detail":"","message":"Network ` + nobody + ` could not be found.","type":"NetworkNotFound"}}`},
		{"malformed network", `"network_id": "nonsense"`, 400, "Invalid input for network_id. Reason: 'nonsense' is not a valid UUID."},
		{"unknown subnet", on + `, "fixed_ips": [{"subnet_id": "` + nobody + `"}]`, 404, "SubnetNotFound"},
		{"unknown group", on + `, "security_groups": ["` + nobody + `"]`, 404, "Security group " + nobody + " does not exist"},
		{"malformed group", on + `, "security_groups": ["nonsense"]`, 400, "Invalid input for security_groups. Reason: 'nonsense' is not a valid UUID."},
		{"malformed MAC", on + `, "mac_address": "nonsense"`, 400, "Invalid input for mac_address. Reason: 'nonsense' is not a valid MAC address."},
		{"long name", on + `, "name": "` + long + `"`, 400, "exceeds maximum length of 255."},
		{"long description", on + `, "description": "` + long + `"`, 400, "exceeds maximum length of 255."},
		{"unknown attribute", on + `, "nonsense": 1`, 400, "Unrecognized attribute(s) 'nonsense'"},
		{"kind of interface", on + `, "binding:vnic_type": "nonsense"`, 400, "Invalid input for binding:vnic_type. Reason: nonsense is not in valid_values."},
		{"profile", on + `, "binding:profile": {"a": "b"}`, 403, "(rule:create_port and rule:create_port:binding:profile) is disallowed by policy"},
		{"groups without security", on + `, "port_security_enabled": false, "security_groups": ["` + state.NamedID("security group", w.cloud.keystone.ProjectID("demo")+"/metakube-mmxfcmgjkx") + `"]`, 400, "PortSecurityAndIPRequiredForSecurityGroups"},
		{"address outside", on + `, "fixed_ips": [{"ip_address": "192.0.2.1"}]`, 400, "InvalidIpForNetwork"},
		{"MAC in another project's network", shared + `, "mac_address": "0a:00:00:00:00:01"`, 403, "(rule:create_port and rule:create_port:mac_address) is disallowed by policy"},
		{"address in another project's network", shared + `, "fixed_ips": [{"ip_address": "10.64.0.9"}]`, 403, "rule:create_port:fixed_ips:ip_address"},
		{"nothing chosen in another project's network", shared, 201, `"mac_address":"fa:16:3e:`},
		{"external network", `"network_id": "` + w.externalID() + `"`, 403, "not allowed to create port on this network"},
		{"address", on + `, "fixed_ips": [{"ip_address": "10.0.7.7"}]`, 201, "10.0.7.7"},
		{"address again", on + `, "fixed_ips": [{"ip_address": "10.0.7.7"}]`, 409, "IpAddressAlreadyAllocated"},
		{"MAC", on + `, "mac_address": "0a:00:00:00:00:01"`, 201, "0a:00:00:00:00:01"},
		{"MAC again, in capitals", on + `, "mac_address": "0A:00:00:00:00:01"`, 409, "The mac address 0A:00:00:00:00:01 is in use."},
		{"tags, which are passed over", on + `, "tags": ["a"]`, 201, `"tags":[]`},
	} {
		cases = append(cases, apiCase{one.name, "POST", "/networking/v2.0/ports", `{"port": {` + one.port + `}}`, one.status, one.says})
	}
	w.check(append(cases,
		apiCase{"unknown port", "DELETE", "/networking/v2.0/ports/" + nobody, "", 404, `"type":"PortNotFound"`},
		apiCase{"unknown filter", "GET", "/networking/v2.0/ports?unknownparam=1", "", 400, "['unknownparam'] is invalid attribute for filtering"},
		apiCase{"limit below zero", "GET", "/networking/v2.0/ports?limit=-1", "", 400, "Bad limit request: Limit must be an integer 0 or greater and not '-1'."},
		apiCase{"unknown marker", "GET", "/networking/v2.0/ports?limit=1&marker=" + nobody, "", 404, "PortNotFound"},
		apiCase{"marker without limit", "GET", "/networking/v2.0/ports?marker=" + nobody, "", 200, `"ports":[`},
		apiCase{"MAC in capitals", "GET", "/networking/v2.0/ports?mac_address=0A:00:00:00:00:01&fields=mac_address", "", 200, `{"ports":[{"mac_address":"0a:00:00:00:00:01"}]}`},
		apiCase{"extension", "GET", "/networking/v2.0/extensions/trunk", "", 200, `"alias":"trunk"`},
		apiCase{"no extension", "GET", "/networking/v2.0/extensions/nonsense", "", 404, "Extension with alias nonsense does not exist"},
		apiCase{"floating IP of a network that is not external", "POST", "/networking/v2.0/floatingips", `{"floatingip": {"floating_network_id": "` + networkID(w) + `"}}`, 400, "is not a valid external network."},
		apiCase{"floating IP of nothing", "POST", "/networking/v2.0/floatingips", `{"floatingip": {"floating_network_id": "` + nobody + `"}}`, 404, "NetworkNotFound"},
		apiCase{"floating IP that is gone", "DELETE", "/networking/v2.0/floatingips/" + nobody, "", 404, "Floating IP " + nobody + " could not be found\""},
	))
}

func TestGlance(t *testing.T) {
	w := open(t, Options{})
	w.check([]apiCase{
		{"by name", "GET", "/image/v2/images?name=tiny-raw", "", 200, `"id":"` + imageID(w) + `"`},
		{"by names", "GET", "/image/v2/images?name=in:a,tiny-raw", "", 200, imageID(w)},
		{"no such name", "GET", "/image/v2/images?name=nonsense", "", 200, `"images":[]`},
		{"by id", "GET", "/image/v2/images/" + imageID(w), "", 200, `"status":"active"`},
		{"no such id", "GET", "/image/v2/images/nonsense", "", 404, "No image found with ID nonsense"},
		{"page", "GET", "/image/v2/images?limit=1", "", 200, `"next":"/v2/images?limit=1`},
	})
	if page := w.call("GET", "/image/v2/images/nonsense", "", "Accept", "*/*"); !strings.HasPrefix(page.raw, "<html>") {
		t.Errorf("whoever does not ask for JSON gets %s", page.raw)
	}
}

func TestKeystone(t *testing.T) {
	w := serve(t, Options{})
	login := func(identity, scope string) string {
		return `{"auth": {"identity": ` + identity + scope + `}}`
	}
	password := func(user string) string { return `{"methods": ["password"], "password": {"user": {` + user + `}}}` }
	demo := `"name": "demo", "domain": {"id": "default"}, "password": "secret"`
	project := func(p string) string { return `, "scope": {"project": {` + p + `}}` }
	const refused = `{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`
	const path = "/v3/auth/tokens"
	w.check([]apiCase{
		{"by name", "POST", path, login(password(demo), project(`"name": "demo", "domain": {"name": "Default"}`)), 201, `"type":"volumev3"`},
		{"by ids", "POST", path, login(password(`"id": "`+state.HexID("user", "demo")+`", "password": "secret"`), project(`"id": "`+w.cloud.keystone.ProjectID("demo")+`"`)), 201, `"catalog"`},
		{"without scope", "POST", path, login(password(demo), ""), 201, `"methods":["password"]`},
		{"wrong password", "POST", path, login(password(`"name": "demo", "domain": {"id": "default"}, "password": "x"`), ""), 401, refused},
		{"unknown user", "POST", path, login(password(`"name": "x", "domain": {"id": "default"}, "password": "secret"`), ""), 401, refused},
		{"unknown domain", "POST", path, login(password(`"name": "demo", "domain": {"id": "x"}, "password": "secret"`), ""), 401, refused},
		{"no domain", "POST", path, login(password(`"name": "demo", "password": "secret"`), ""), 400, "Expecting to find domain in user."},
		{"another project", "POST", path, login(password(demo), project(`"name": "alt", "domain": {"id": "default"}`)), 401, refused},
		{"nothing", "POST", path, `{}`, 400, "Expecting to find auth in request body."},
		{"credential", "POST", path, login(`{"methods": ["application_credential"], "application_credential": {"name": "demo", "secret": "secret", "user": {"name": "demo", "domain": {"name": "Default"}}}}`, ""), 201, `"catalog"`},
		{"credential by id", "POST", path, login(`{"methods": ["application_credential"], "application_credential": {"id": "`+state.HexID("application credential", "demo")+`", "secret": "secret"}}`, ""), 201, `"catalog"`},
		{"secret of a credential", "POST", path, login(`{"methods": ["application_credential"], "application_credential": {"id": "`+state.HexID("application credential", "demo")+`", "secret": "x"}}`, ""), 401, refused},
		{"unknown credential", "POST", path, login(`{"methods": ["application_credential"], "application_credential": {"id": "nonsense", "secret": "x"}}`, ""), 404, "Could not find Application Credential: nonsense."},
		{"unknown token", "POST", path, login(`{"methods": ["token"], "token": {"id": "nonsense"}}`, ""), 404, "Could not recognize Fernet token"},
		{"versions", "GET", "/", "", 300, `"id":"v3.14"`},
		{"version", "GET", "/v3", "", 200, `"id":"v3.14"`},
		{"Nova without a token", "GET", "/compute/v2.1/servers", "", 401, refused},
		{"Neutron without a token", "GET", "/networking/v2.0/ports", "", 401, refused},
	})
}

func TestUnscopedTokensSeeNothing(t *testing.T) {
	w := open(t, Options{})
	w.machine("a")
	got := w.call("POST", "/v3/auth/tokens", `{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "demo", "domain": {"id": "default"}, "password": "secret"}}}}}`)
	if listed := w.call("GET", "/compute/v2.1/servers", "", "X-Auth-Token", got.header.Get("X-Subject-Token")); listed.raw != `{"servers":[]}` {
		t.Errorf("%d %s", listed.status, listed.raw)
	}
}

func TestProjectsDoNotSeeEachOther(t *testing.T) {
	w := open(t, Options{})
	port, server := w.machine("a")
	w.login("alt")
	w.check([]apiCase{
		{"server", "GET", "/compute/v2.1/servers/" + server, "", 404, "could not be found"},
		{"servers", "GET", "/compute/v2.1/servers", "", 200, `{"servers":[]}`},
		{"port", "DELETE", "/networking/v2.0/ports/" + port, "", 404, "PortNotFound"},
		{"ports", "GET", "/networking/v2.0/ports?device_owner=compute:nova", "", 200, `{"ports":[]}`},
		{"network", "GET", "/networking/v2.0/networks/" + w.given("demo", "demo-net"), "", 404, "NetworkNotFound"},
	})
	w.login("admin")
	w.check([]apiCase{
		{"all servers", "GET", "/compute/v2.1/servers?all_tenants=1", "", 200, server},
		{"a port", "GET", "/networking/v2.0/ports/" + port, "", 200, "binding:host_id"},
	})
}
