package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// answered is gophercloud's error for an answer.
func answered(code int, body string, headers ...string) error {
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return gophercloud.ErrUnexpectedResponseCode{
		URL: "https://nova.example.com:8774/v2.1/servers?name=x", Method: "POST", Expected: []int{202}, Actual: code,
		Body: []byte(body), ResponseHeader: header,
	}
}

func TestExplainAnswers(t *testing.T) {
	for _, test := range []struct {
		name   string
		err    error
		reason string
		// message is all of it.
		message string
	}{
		{
			"unknown flavor", answered(400, `{"badRequest": {"code": 400, "message": "Flavor 11111111-1111-4111-8111-111111111111 could not be found."}}`),
			"DEPENDENCY_NOT_FOUND", "Flavor 11111111-1111-4111-8111-111111111111 could not be found.",
		},
		{
			"unknown image", answered(400, `{"badRequest": {"code": 400, "message": "Can not find requested image"}}`),
			"DEPENDENCY_NOT_FOUND", "Can not find requested image",
		},
		{
			"unknown image, older Novas", answered(400, `{"badRequest": {"message": "Invalid imageRef provided.", "code": 400}}`),
			"DEPENDENCY_NOT_FOUND", "Invalid imageRef provided.",
		},
		{
			"image not active", answered(400, `{"badRequest": {"code": 400, "message": "Image 573fa07e is not active."}}`),
			"DEPENDENCY_NOT_FOUND", "Image 573fa07e is not active.",
		},
		{
			"unknown port", answered(400, `{"badRequest": {"code": 400, "message": "Port id 11111111-1111-4111-8111-111111111111 could not be found."}}`),
			"DEPENDENCY_NOT_FOUND", "Port id 11111111-1111-4111-8111-111111111111 could not be found.",
		},
		{
			"unknown network", answered(400, `{"badRequest": {"code": 400, "message": "Network 1 could not be found."}}`),
			"DEPENDENCY_NOT_FOUND", "Network 1 could not be found.",
		},
		{
			"unknown server group", answered(400, `{"badRequest": {"code": 400, "message": "Instance group 1 could not be found."}}`),
			"DEPENDENCY_NOT_FOUND", "Instance group 1 could not be found.",
		},
		{
			"unknown zone", answered(400, `{"badRequest": {"code": 400, "message": "The requested availability zone is not available"}}`),
			"DEPENDENCY_NOT_FOUND", "The requested availability zone is not available",
		},
		{
			"unknown security group", answered(400, `{"badRequest": {"code": 400, "message": "Unable to find security_group with name or id 'nothing'"}}`),
			"DEPENDENCY_NOT_FOUND", "Unable to find security_group with name or id 'nothing'",
		},
		{
			"a wrong request", answered(400, `{"badRequest": {"code": 400, "message": "Invalid input for field/attribute 0. Value: a,b. 'a,b' does not match '^[^,/]*$'"}}`),
			"SPEC_INVALID", "Invalid input for field/attribute 0. Value: a,b. 'a,b' does not match '^[^,/]*$'",
		},
		{"a proxy's 400", answered(400, ""), "OUTCOME_UNKNOWN", "nova.example.com:8774 answered 400 Bad Request."},
		{
			"a proxy's page", answered(400, "<html>\n<head><title>400 Bad Request</title></head>\n<body><center>nginx</center></body>\n</html>"),
			"OUTCOME_UNKNOWN", "nova.example.com:8774 answered 400 Bad Request.",
		},
		{
			"a proxy's text", answered(400, "Client sent an HTTP request to an HTTPS server."),
			"OUTCOME_UNKNOWN", "nova.example.com:8774 answered 400 Bad Request: Client sent an HTTP request to an HTTPS server.",
		},
		{
			"a gateway's JSON", answered(400, `{"message": "header too large"}`),
			"OUTCOME_UNKNOWN", "nova.example.com:8774 answered 400 Bad Request: header too large.",
		},
		{
			"another gateway's JSON", answered(400, `{"error": {"code": "InvalidHeader", "message": "header too large"}}`),
			"OUTCOME_UNKNOWN", "header too large",
		},
		{"a proxy's 406", answered(406, "<html></html>"), "OUTCOME_UNKNOWN", "nova.example.com:8774 answered 406 Not Acceptable."},
		{
			"a wrong request to Glance", answered(400, `{"message": "Invalid filter<br /><br />\n\n\n", "code": "400 Bad Request", "title": "Bad Request"}`),
			"SPEC_INVALID", "Invalid filter",
		},
		{
			"a wrong request to Keystone", answered(400, `{"error": {"code": 400, "message": "Expecting to find domain in user.", "title": "Bad Request"}}`),
			"SPEC_INVALID", "Expecting to find domain in user.",
		},
		{
			"a wrong request to Neutron that finds nothing in a body", answered(400, `{"NeutronError": {"type": "HTTPBadRequest", "message": "Unable to find 'port' in request body", "detail": ""}}`),
			"SPEC_INVALID", "Unable to find 'port' in request body",
		},
		{
			"an address outside", answered(400, `{"NeutronError": {"type": "InvalidIpForNetwork", "message": "IP address 192.0.2.1 is not a valid IP for any of the subnets on the specified network.", "detail": ""}}`),
			"SPEC_INVALID", "IP address 192.0.2.1 is not a valid IP for any of the subnets on the specified network.",
		},
		{
			"no external address", answered(400, `{"NeutronError": {"type": "ExternalIpAddressExhausted", "message": "Unable to find any IP address on external network 1.", "detail": ""}}`),
			"CAPACITY_UNAVAILABLE", "Unable to find any IP address on external network 1.",
		},
		{"a token", answered(401, expiredBody), "CREDENTIALS_INVALID", "The request you have made requires authentication."},
		{
			"a token, by Glance", answered(401, "<html>\n <head>\n  <title>401 Unauthorized</title>\n </head>\n <body>\n  <h1>401 Unauthorized</h1>\n  This server could not verify…\n</body>\n</html>"),
			"CREDENTIALS_INVALID", "nova.example.com:8774 answered 401 Unauthorized.",
		},
		{
			"quota of instances", answered(403, `{"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances"}}`),
			"QUOTA_EXCEEDED", "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances",
		},
		{
			"quota, unified limits", answered(403, `{"forbidden": {"code": 403, "message": "Project bbfd is over a limit for [Resource servers is over limit of 2 due to current usage 2 and delta 1]"}}`),
			"QUOTA_EXCEEDED", "Project bbfd is over a limit for [Resource servers is over limit of 2 due to current usage 2 and delta 1]",
		},
		{
			"quota of metadata", answered(403, `{"forbidden": {"code": 403, "message": "Maximum number of metadata items exceeds 128"}}`),
			"QUOTA_EXCEEDED", "Maximum number of metadata items exceeds 128",
		},
		{
			"a role", answered(403, `{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:servers:create to be performed."}}`),
			"PERMISSION_MISSING", "Policy doesn't allow os_compute_api:servers:create to be performed.",
		},
		{
			"a role in Neutron", answered(403, `{"NeutronError": {"type": "PolicyNotAuthorized", "message": "(rule:create_port and rule:create_port:binding:profile) is disallowed by policy", "detail": ""}}`),
			"PERMISSION_MISSING", "(rule:create_port and rule:create_port:binding:profile) is disallowed by policy",
		},
		{
			"no server", answered(404, `{"itemNotFound": {"code": 404, "message": "Instance nonsense could not be found."}}`),
			"DEPENDENCY_NOT_FOUND", "Instance nonsense could not be found.",
		},
		{
			"no network", answered(404, `{"NeutronError": {"type": "NetworkNotFound", "message": "Network 1 could not be found.", "detail": ""}}`),
			"DEPENDENCY_NOT_FOUND", "Network 1 could not be found.",
		},
		{
			"no image", answered(404, `{"message": "No image found with ID 1<br /><br />\n\n\n", "code": "404 Not Found", "title": "Not Found"}`),
			"DEPENDENCY_NOT_FOUND", "No image found with ID 1",
		},
		{
			"no service there", answered(404, "default backend - 404"),
			"OUTCOME_UNKNOWN", "nova.example.com:8774 answered 404 Not Found: default backend - 404.",
		},
		{
			"a version that Nova does not speak", answered(406, `{"computeFault": {"code": 406, "message": "Version 2.999 is not supported by the API. Minimum is 2.1 and maximum is 2.93."}}`),
			"SPEC_INVALID", "Version 2.999 is not supported by the API. Minimum is 2.1 and maximum is 2.93.",
		},
		{
			"quota of ports", answered(409, `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}`),
			"QUOTA_EXCEEDED", "Quota exceeded for resources: ['port'].",
		},
		{
			"no address", answered(409, `{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses available on network 1.", "detail": ""}}`),
			"CAPACITY_UNAVAILABLE", "No more IP addresses available on network 1.",
		},
		{
			"an address of somebody else", answered(409, `{"NeutronError": {"type": "IpAddressAlreadyAllocated", "message": "IP address 10.0.3.12 already allocated in subnet 1", "detail": ""}}`),
			"CAPACITY_UNAVAILABLE", "IP address 10.0.3.12 already allocated in subnet 1",
		},
		{
			"no host", answered(409, `{"conflictingRequest": {"code": 409, "message": "No valid host was found. There are not enough hosts available."}}`),
			"CAPACITY_UNAVAILABLE", "No valid host was found. There are not enough hosts available.",
		},
		{
			"a MAC address in use", answered(409, `{"NeutronError": {"type": "MacAddressInUse", "message": "Unable to complete operation for network 1. The mac address 0a:00:00:00:00:01 is in use.", "detail": ""}}`),
			"OPERATION_PENDING", "Unable to complete operation for network 1. The mac address 0a:00:00:00:00:01 is in use.",
		},
		{
			"a port in use", answered(409, `{"conflictingRequest": {"code": 409, "message": "Port 1 is still in use."}}`),
			"OPERATION_PENDING", "Port 1 is still in use.",
		},
		{
			"a busy server", answered(409, `{"conflictingRequest": {"code": 409, "message": "Cannot 'delete' instance 1 while it is in task_state deleting"}}`),
			"OPERATION_PENDING", "Cannot 'delete' instance 1 while it is in task_state deleting",
		},
		{
			"a flavor without a disk", answered(403, `{"forbidden": {"code": 403, "message": "Only volume-backed servers are allowed for flavors with zero disk."}}`),
			"SPEC_INVALID", "Only volume-backed servers are allowed for flavors with zero disk.",
		},
		{
			"a locked server", answered(409, `{"conflictingRequest": {"code": 409, "message": "Instance 98b8b790-3dfa-4503-846f-d8fa72677ab9 is locked"}}`),
			"DELETION_PROTECTED", "Instance 98b8b790-3dfa-4503-846f-d8fa72677ab9 is locked",
		},
		{
			"Cinder's quota", answered(413, `{"overLimit": {"code": 413, "message": "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 10G, quota is 1000G and 995G has been consumed.", "retryAfter": "0"}}`, "Retry-After", "0"),
			"QUOTA_EXCEEDED", "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 10G, quota is 1000G and 995G has been consumed.",
		},
		{
			"too many requests, as of old", answered(413, `{"overLimit": {"code": 413, "message": "This request was rate-limited.", "retryAfter": "54"}}`, "Retry-After", "54"),
			"RATE_LIMITED", "This request was rate-limited.",
		},
		{
			"too many requests, without a time", answered(413, `{"overLimit": {"code": 413, "message": "This request was rate-limited."}}`),
			"RATE_LIMITED", "This request was rate-limited.",
		},
		{"several things", answered(500, `{"b": {"message": "second"}, "a": {"message": "first"}, "c": {"message": "third"}}`), "PROVIDER_INTERNAL", "first"},
		{
			"too much for a proxy", answered(413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
			"REQUEST_TOO_LARGE", "nova.example.com:8774 answered 413 Request Entity Too Large.",
		},
		{"too many requests", answered(429, "", "Retry-After", "7"), "RATE_LIMITED", "nova.example.com:8774 answered 429 Too Many Requests."},
		{
			"a bug", answered(500, `{"computeFault": {"code": 500, "message": "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'oslo_db.exception.DBConnectionError'>"}}`),
			"PROVIDER_INTERNAL", "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible. <class 'oslo_db.exception.DBConnectionError'>",
		},
		{"a proxy", answered(502, "<html><body><h1>502 Bad Gateway</h1></body></html>"), "OUTCOME_UNKNOWN", "nova.example.com:8774 answered 502 Bad Gateway."},
		{
			"Keystone is away", answered(503, `{"message": "The server is currently unavailable. Please try again at a later time.<br /><br />\nThe Keystone service is temporarily unavailable.\n\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}`),
			"OUTCOME_UNKNOWN", "The server is currently unavailable. Please try again at a later time. The Keystone service is temporarily unavailable.",
		},
		{"a slow proxy", answered(504, "upstream request timeout"), "OUTCOME_UNKNOWN", "nova.example.com:8774 answered 504 Gateway Timeout: upstream request timeout."},
		{"no reason known", answered(418, "[]"), "PROVIDER_INTERNAL", "nova.example.com:8774 answered 418 I'm a teapot: []."},
		{
			"elsewhere", answered(302, "", "Location", "https://login.example.com/?next=x"),
			"PROVIDER_INTERNAL", "https://nova.example.com:8774 answered 302 Found, which leads to https://login.example.com and is not followed.",
		},
		{
			"elsewhere, with a service's words", answered(302, `{"badRequest": {"code": 302, "message": "Go away."}}`, "Location", "http://nova.example.com:8774/"),
			"PROVIDER_INTERNAL", "https://nova.example.com:8774 answered 302 Found, which leads to http://nova.example.com:8774 and is not followed: Go away.",
		},
		{
			"nowhere", answered(302, "", "Location", "http://%zz/"),
			"PROVIDER_INTERNAL", "https://nova.example.com:8774 answered 302 Found, which leads to another place and is not followed.",
		},
		{
			"no time and no request id", answered(500, `{"computeFault": {"message": "It broke at 2026-11-22T10:03:23.000000. (HTTP 500) (Request-ID: req-57a2f22d-74a7-49cc-9828-a0159d9c6599)", "code": 500}}`),
			"PROVIDER_INTERNAL", "It broke at …. (HTTP 500)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("ask: %w", test.err)} {
				got := session.Explain(err)
				if reasonOf(got) != test.reason || got.Error() != test.message {
					t.Errorf("%s %q, want %s %q", reasonOf(got), got, test.reason, test.message)
				}
			}
		})
	}
}

func TestExplainKeepsDetails(t *testing.T) {
	now := time.Now()
	err := session.Explain(answered(406, `{"computeFault": {"code": 406, "message": "Version 2.999 is not supported by the API."}}`))
	expectFields(t, err, "computeAPIVersion")
	for name, test := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds":             {[]string{"Retry-After", "7"}, 7 * time.Second},
		"a date":              {[]string{"Retry-After", "Sun, 22 Nov 2026 10:00:09 GMT", "Date", "Sun, 22 Nov 2026 10:00:00 GMT"}, 9 * time.Second},
		"a date gone by":      {[]string{"Retry-After", now.Add(-time.Hour).UTC().Format(http.TimeFormat)}, 0},
		"nonsense":            {[]string{"Retry-After", "soon"}, 0},
		"less than nothing":   {[]string{"Retry-After", "-7"}, 0},
		"more than a life":    {[]string{"Retry-After", "99999999999999"}, 10 * time.Minute},
		"nothing":             {nil, 0},
		"longer than obeyed":  {[]string{"Retry-After", "86400"}, 10 * time.Minute},
		"a date in far times": {[]string{"Retry-After", "Sun, 22 Nov 2093 10:00:09 GMT"}, 10 * time.Minute},
	} {
		for _, code := range []int{429, 503} {
			if got := waitOf(session.Explain(answered(code, "", test.headers...))); got != test.want {
				t.Errorf("%s: %d asks for %s, want %s", name, code, got, test.want)
			}
		}
	}
	if got := waitOf(session.Explain(answered(500, "", "Retry-After", "7"))); got != 0 {
		t.Errorf("500 asks for %s", got)
	}
}

func TestExplainNamesQuotas(t *testing.T) {
	for message, want := range map[string][]string{
		"Quota exceeded for instances: Requested 1, but already used 2 of 2 instances":                                                                            {"instances"},
		"Quota exceeded for cores, ram: Requested 4, 8192, but already used …":                                                                                    {"cores", "ram"},
		"Quota exceeded for resources: ['floatingip', 'port'].":                                                                                                   {"floatingip", "port"},
		"Project 1 is over a limit for [Resource servers is over limit of 2 due to current usage 2 and delta 1, Resource class:VCPU is over limit of 4 due to …]": {"servers", "class:VCPU"},
		"VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.":                                                               {"volumes"},
		"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota.":                                                          {"gigabytes"},
		"Maximum number of metadata items exceeds 128":                                                                                                            {"metadata items"},
		"Quota exceeded, too many servers in group":                                                                                                               {"quota"},
	} {
		body, _ := json.Marshal(map[string]any{"forbidden": map[string]any{"code": 403, "message": message}})
		err := session.Explain(answered(403, string(body)))
		if reasonOf(err) != "QUOTA_EXCEEDED" {
			t.Errorf("%s: %s", message, reasonOf(err))
		}
		if diff := cmp.Diff(want, quotasOf(err)); diff != "" {
			t.Errorf("%s: %s", message, diff)
		}
	}
}

// timeout is what a dialer's passes for.
type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestExplainLostAnswers(t *testing.T) {
	read := &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 51234}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5000},
		Err: os.NewSyscallError("read", syscall.ECONNRESET),
	}
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5000}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"refused", dial, "nova.example.com:8774: connection refused."},
		{"reset", read, "nova.example.com:8774: connection reset by peer."},
		{"closed", io.EOF, "nova.example.com:8774: the connection was closed before the answer was complete."},
		{"cut", io.ErrUnexpectedEOF, "nova.example.com:8774: the connection was closed before the answer was complete."},
		{"slow", &net.OpError{Op: "dial", Net: "tcp", Err: timeout{}}, "nova.example.com:8774: the connection timed out."},
		{"no such name", &net.OpError{Op: "dial", Err: &net.DNSError{Name: "nova.example.com", Err: "no such host", Server: "127.0.0.53:53"}}, "nova.example.com:8774: look up nova.example.com: no such host."},
		{"other words", errors.New("read tcp 127.0.0.1:51234->127.0.0.1:5000: use of closed network connection"), "nova.example.com:8774: read tcp 127.0.0.1:5000: use of closed network connection."},
		{"an old certificate", errors.New("x509: certificate has expired or is not yet valid: current time 2026-11-22T10:00:00Z is after 2025-01-01T00:00:00Z"), "nova.example.com:8774: x509: certificate has expired or is not yet valid: current time … is after …."},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := session.Explain(&url.Error{Op: "Get", URL: "https://nova.example.com:8774/v2.1/servers?name=x", Err: test.err})
			if want := "The cloud did not answer: " + test.want; reasonOf(got) != "OUTCOME_UNKNOWN" || got.Error() != want {
				t.Errorf("%s %q, want %q", reasonOf(got), got, want)
			}
		})
	}
}

func TestExplainOtherErrors(t *testing.T) {
	var into struct{ Server int }
	broken := json.Unmarshal([]byte(`{"server": `), &into)
	wrong := json.Unmarshal([]byte(`{"server": "x"}`), &into)
	own := sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN, "taken")
	wrapped := fmt.Errorf("find: %w", own)
	late := &url.Error{Op: "Get", URL: "https://nova.example.com", Err: context.DeadlineExceeded}
	for _, test := range []struct {
		name   string
		err    error
		reason string
		same   bool
	}{
		{"none", nil, "", true},
		{"the contract's", own, "NAME_TAKEN", true},
		{"the contract's, wrapped", wrapped, "NAME_TAKEN", true},
		{"the caller has gone", context.Canceled, "", true},
		{"the caller's time is up", late, "", true},
		{"half an answer", broken, "OUTCOME_UNKNOWN", false},
		{"less than that", io.EOF, "OUTCOME_UNKNOWN", false},
		{"an answer of another form", fmt.Errorf("read: %w", wrong), "OUTCOME_UNKNOWN", false},
		{"anything else", errors.New("no idea"), "PROVIDER_INTERNAL", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := session.Explain(test.err)
			if reasonOf(got) != test.reason || errors.Is(got, test.err) != test.same {
				t.Errorf("%s %v", reasonOf(got), got)
			}
			if again := session.Explain(got); !errors.Is(again, got) {
				t.Errorf("explained twice: %v", again)
			}
		})
	}
}

func TestExplainHidesUserData(t *testing.T) {
	const secret = "IyEvYmluL3NoCmVjaG8gdG9rZW4tb2YtdGhlLWtpbmRlcg=="
	for _, test := range []struct{ message, want string }{
		{"Invalid input for field/attribute user_data. Value: " + secret + ". '" + secret + "' is too long", "Invalid input for field/attribute user_data: is too long"},
		{
			"Invalid input for field/attribute server. Value: {'name': 'f', 'user_data': '" + secret + "'}. Additional properties are not allowed ('nonsense' was unexpected)",
			"Invalid input for field/attribute server: Additional properties are not allowed ('nonsense' was unexpected)",
		},
		{
			"Invalid input for field/attribute server. Value: {'user_data': '" + secret + "'}. {'user_data': '" + secret + "'} is not valid under any of the given schemas",
			"Invalid input for field/attribute server.",
		},
		{"Invalid input for field/attribute adminPass. Value: " + secret, "Invalid input for field/attribute adminPass."},
		{
			"Invalid input for field/attribute description. Value: " + strings.Repeat("d", 256) + ". '" + strings.Repeat("d", 256) + "' is too long",
			"Invalid input for field/attribute description: is too long",
		},
		{"Invalid input for field/attribute group. Value: nonsense. 'nonsense' is not a 'uuid'", "Invalid input for field/attribute group. Value: nonsense. 'nonsense' is not a 'uuid'"},
	} {
		body, _ := json.Marshal(map[string]any{"badRequest": map[string]any{"code": 400, "message": test.message}})
		got := session.Explain(answered(400, string(body)))
		if reasonOf(got) != "SPEC_INVALID" || strings.Contains(got.Error(), secret) || got.Error() != test.want {
			t.Errorf("%s %q, want %q", reasonOf(got), got, test.want)
		}
	}
}

func TestKindsOfErrors(t *testing.T) {
	const (
		inUse     = `{"NeutronError": {"type": "MacAddressInUse", "message": "Unable to complete operation for network 1. The mac address 0a:00:00:00:00:01 is in use.", "detail": ""}}`
		forbidden = `{"NeutronError": {"type": "PolicyNotAuthorized", "message": "(rule:create_port and rule:create_port:mac_address) is disallowed by policy", "detail": ""}}`
		profile   = `{"NeutronError": {"type": "PolicyNotAuthorized", "message": "(rule:create_port and rule:create_port:binding:profile) is disallowed by policy", "detail": ""}}`
		taken     = `{"NeutronError": {"type": "FloatingIPPortAlreadyAssociated", "message": "Cannot associate floating IP …", "detail": ""}}`
	)
	kinds := map[string]func(error) bool{
		"gone": session.IsGone, "without": session.IsWithout, "conflict": session.IsConflict, "MAC in use": session.IsMACInUse,
		"port in use":   func(err error) bool { return session.IsPortInUse(err, "7") },
		"MAC forbidden": session.IsMACForbidden, "floating IP taken": session.IsFloatingIPTaken,
		"refused": session.IsRefused,
	}
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"none":              {nil, nil},
		"no server there":   {answered(404, `{"itemNotFound": {"code": 404, "message": "Instance 1 could not be found."}}`), []string{"gone", "refused"}},
		"no port there":     {answered(404, `{"NeutronError": {"type": "PortNotFound", "message": "Port 1 could not be found.", "detail": ""}}`), []string{"gone", "refused"}},
		"no such path":      {answered(404, `{"NeutronError": {"type": "HTTPNotFound", "message": "The resource could not be found.", "detail": ""}}`), []string{"refused", "without"}},
		"no such path here": {answered(404, `{"message": "The resource could not be found.<br /><br />", "code": "404 Not Found", "title": "Not Found"}`), []string{"refused"}},
		"no service there":  {answered(404, "default backend - 404"), []string{"refused"}},
		"port in use":       {answered(409, `{"conflictingRequest": {"code": 409, "message": "Port 7 is still in use."}}`), []string{"conflict", "port in use", "refused"}},
		"another in use":    {answered(409, `{"conflictingRequest": {"code": 409, "message": "Port 17 is still in use."}}`), []string{"conflict", "refused"}},
		"MAC in use":        {answered(409, inUse), []string{"MAC in use", "conflict", "refused"}},
		"MAC not mine":      {answered(403, forbidden), []string{"MAC forbidden", "refused"}},
		"profile not mine":  {answered(403, profile), []string{"refused"}},
		"floating IP taken": {answered(409, taken), []string{"conflict", "floating IP taken", "refused"}},
		"wrong":             {answered(400, `{"badRequest": {"code": 400, "message": "Invalid input."}}`), []string{"refused"}},
		"a proxy's 400":     {answered(400, "<html></html>"), nil},
		"too late":          {answered(408, ""), nil},
		"a bug":             {answered(500, ""), nil},
		"a proxy":           {answered(502, ""), nil},
		"no answer":         {io.EOF, nil},
		"the end":           {context.Canceled, nil},
	} {
		for _, err := range []error{test.err, session.Explain(test.err), fmt.Errorf("again: %w", session.Explain(test.err))} {
			var got []string
			for kind, is := range kinds {
				if is(err) {
					got = append(got, kind)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
			if test.err == nil {
				break
			}
		}
	}
}

func FuzzExplain(f *testing.F) {
	f.Add(400, []byte(`{"badRequest": {"code": 400, "message": "Invalid input for field/attribute user_data. Value: x. 'x' is too long"}}`))
	f.Add(409, []byte(`{"NeutronError": "text"}`))
	f.Add(413, []byte(`{"overLimit": {"message": 7}}`))
	f.Add(503, []byte(`<html>`))
	f.Add(0, []byte(`{"errors": [{"detail": "x"}]}`))
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		err := session.Explain(answered(code, string(body), "Retry-After", string(body)))
		if reasonOf(err) == "" || err.Error() == "" {
			t.Errorf("%d %q became %v", code, body, err)
		}
		if again := session.Explain(answered(code, string(body), "Retry-After", string(body))); again.Error() != err.Error() {
			t.Errorf("%d %q became %v and %v", code, body, err, again)
		}
	})
}
