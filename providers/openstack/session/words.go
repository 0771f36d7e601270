package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// words are what a service says about why it refused.
type words struct {
	// kind is the class of a Neutron error, what Nova, Cinder and Keystone call theirs (badRequest,
	// overLimit, error), or a title of Glance's. It is empty where no service has spoken.
	kind string
	// message is stable; empty where nothing was said.
	message string
	// service says that the answer has the form of one of the services, and not only some other
	// JSON.
	service bool
}

// maxPlain is the longest text without any form that is taken for words, in bytes. Longer ones are
// pages.
const maxPlain = 200

// readWords finds the words in an answer. Each service has a form of its own.
func readWords(body []byte) words {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return words{message: plain(string(body))}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw := fields[name]
		var fault struct {
			Type    string          `json:"type"`
			Message string          `json:"message"`
			Code    json.RawMessage `json:"code"`
		}
		var text string
		switch {
		case name == "message" && json.Unmarshal(raw, &text) == nil:
			// Glance: {"message": "…<br /><br />", "code": "404 Not Found", "title": "Not Found"}
			var title, code string
			_, _ = json.Unmarshal(fields["title"], &title), json.Unmarshal(fields["code"], &code)
			return words{kind: title, message: stable(text), service: title != "" && strings.HasSuffix(code, " "+title)}
		case name == "NeutronError" && json.Unmarshal(raw, &fault) == nil:
			return words{kind: fault.Type, message: stable(fault.Message), service: fault.Type != ""}
		case json.Unmarshal(raw, &fault) == nil && fault.Message != "":
			_, err := strconv.Atoi(string(fault.Code)) // Nova, Cinder, Keystone: {"badRequest": {"code": 400, "message": "…"}}
			return words{kind: name, message: stable(fault.Message), service: err == nil}
		}
	}
	return words{}
}

// plain returns a text that is short and no page.
func plain(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > maxPlain || strings.HasPrefix(text, "<") || !utf8.ValidString(text) {
		return ""
	}
	return stable(text)
}

// or returns the words of a service, or else who answered with which status, and what it said. Of a
// redirect it always says where that leads.
func (w words) or(answer gophercloud.ErrUnexpectedResponseCode) string {
	who, leads := hostOf(answer.URL), ""
	if location := answer.ResponseHeader.Get("Location"); location != "" && answer.Actual/100 == 3 {
		var to string
		who, to = serversOf(answer.URL, location)
		leads = ", which leads to " + to + " and is not followed"
	}
	if w.kind != "" && w.message != "" && leads == "" {
		return w.message
	}
	text := fmt.Sprintf("%s answered %d %s%s", who, answer.Actual, http.StatusText(answer.Actual), leads)
	if w.message != "" {
		text += ": " + strings.TrimSuffix(w.message, ".")
	}
	return text + "."
}

// names says whether a word stands in the message.
func (w words) names(word string) bool { return strings.Contains(w.message, word) }

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "The cloud"
	}
	return u.Host
}

// serversOf says which server redirects to which, with their schemes. Paths, queries and users are
// left out.
func serversOf(asked, location string) (from, to string) {
	at, err := url.Parse(asked)
	if err != nil || at.Host == "" {
		return "The cloud", "another place"
	}
	from = at.Scheme + "://" + at.Host
	next, err := at.Parse(location)
	if err != nil || next.Host == "" {
		return from, "another place"
	}
	if next.Scheme == at.Scheme && next.Host == at.Host {
		return from, "another path of it"
	}
	return from, next.Scheme + "://" + next.Host
}

// reasonOfType says what the classes of Neutron's errors mean whose status says too little; 0 for
// all others.
func reasonOfType(kind string) driverv1alpha1.ErrorReason {
	switch kind {
	case "OverQuota":
		return driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
	case "IpAddressGenerationFailure", "IpAddressGenerationFailureAllSubnets", "IpAddressGenerationFailureNoMatchingSubnet",
		"ExternalIpAddressExhausted", // a 400
		// An address that the spec chose and that somebody else has: it is no operation that will
		// be over in a second.
		"IpAddressInUse", "IpAddressAlreadyAllocated":
		return driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE
	}
	return 0
}

// phrase is something that OpenStack says in words alone.
type phrase struct {
	// kinds are the forms that the words come in; none means any.
	kinds    []string
	statuses []int
	// text is a part of the message, in lower case.
	text   string
	reason driverv1alpha1.ErrorReason
}

// phrases is the only place where words are read for their meaning: Nova and Cinder have no types.
// Each is what their sources say, in the releases from Queens to Dalmatian.
func phrases() []phrase {
	const (
		quota    = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
		capacity = driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE
		absence  = driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
		locked   = driverv1alpha1.ErrorReason_ERROR_REASON_DELETION_PROTECTED
		wrong    = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
		pending  = driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING
	)
	refused := []int{http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge}
	limits := append(slices.Clone(refused), asynchronous)
	bad, conflict := []int{http.StatusBadRequest}, []int{http.StatusConflict}
	full := []int{http.StatusConflict, asynchronous}
	nova := []string{"badRequest"}
	return []phrase{
		{nil, limits, "quota exceeded", quota},      // Nova: "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances"
		{nil, limits, "exceeded for quota", quota},  // Cinder: "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'."
		{nil, limits, "exceeds allowed", quota},     // Cinder: "… Requested volume or snapshot exceeds allowed gigabytes quota. …"
		{nil, limits, "is over a limit for", quota}, // unified limits: "Project … is over a limit for [Resource servers is over limit of 2 …]"
		{nil, full, "no valid host", capacity},      // Nova: "No valid host was found. …"
		{nil, full, "no more ip addr", capacity},    // Neutron's, where Nova hands it on
		{nil, refused, "maximum number of", quota},  // Nova: "Maximum number of metadata items exceeds 128"
		{nil, conflict, " is locked", locked},       // Nova: "Instance … is locked"
		// Nova: "Only volume-backed servers are allowed for flavors with zero disk." It is no
		// permission that is missing.
		{nil, []int{http.StatusForbidden}, "only volume-backed servers", wrong},
		// Of what a server is made of, Nova says 400 when it is not there.
		{nova, bad, "could not be found", absence},                 // "Flavor … could not be found.", "Port id …", "Network …", "Instance group …"
		{nova, bad, "not found", absence},                          // "Security group … not found."
		{nova, bad, "can not find requested image", absence},       // as it says
		{nova, bad, "invalid imageref provided", absence},          // older Novas, of an unknown image
		{nova, bad, "unable to find security_group", absence},      // "… with name or id '…'"
		{nova, bad, "is not active", absence},                      // "Image … is not active."
		{nova, bad, "availability zone is not available", absence}, // "The requested availability zone is not available"
		// "Invalid volume: Volume … status must be available or downloading to reserve, but the
		// current status is …": it was seen to be available a moment ago.
		{nova, bad, "to reserve, but the current status", pending},
		// Cinder, of one that has snapshots, say: "Invalid volume: Volume status must be available
		// or error … and must not be migrating, attached, belong to a group, have snapshots, …"
		{nova, bad, "volume status must be available or error", locked},
		{nova, bad, "failed to get volume", absence}, // "Block Device Mapping is Invalid: failed to get volume …"
		{nova, bad, "failed to get image", absence},
		{nova, bad, "availability zone '", absence},      // Cinder: "Availability zone '…' is invalid."
		{nova, bad, "invalid image identifier", absence}, // Cinder's of an unknown image
		{nova, bad, "invalid key_name provided", absence},
	}
}

// asynchronous stands for the status of what Nova says of a server that it took and could not make.
const asynchronous = -1

// ReasonOfFault says whether the words of a server's fault are about a quota or about capacity:
// then it is the reason that the same words have in an answer. It is 0 for all others.
func ReasonOfFault(message string) driverv1alpha1.ErrorReason {
	return reasonOfPhrase(asynchronous, words{message: message})
}

// reasonOfPhrase says what words mean; 0 for all others.
func reasonOfPhrase(status int, said words) driverv1alpha1.ErrorReason {
	text := strings.ToLower(said.message)
	for _, p := range phrases() {
		fits := slices.Contains(p.statuses, status) && (p.kinds == nil || slices.Contains(p.kinds, said.kind))
		if fits && strings.Contains(text, p.text) {
			return p.reason
		}
	}
	return 0
}

var (
	// Nova: "Quota exceeded for cores, ram: Requested …". Neutron: "Quota exceeded for resources:
	// ['port']." Cinder: "… exceeded for quota 'volumes'.", "… exceeds allowed gigabytes quota.".
	// oslo.limit: "Resource servers is over limit of …".
	quotaList  = regexp.MustCompile(`Quota exceeded for (?:resources: )?([^:.]+)`)
	quotaNames = regexp.MustCompile(`for quota '(\w+)'|exceeds allowed (\w+) quota|Resource ([\w:]+) is over limit|Maximum number of ([\w ]+?) exceeds`)
)

// quotasIn returns the quotas that a message names; "quota" where it names none.
func quotasIn(message string) []string {
	var all []string
	for _, match := range quotaNames.FindAllStringSubmatch(message, -1) {
		all = append(all, strings.Join(match[1:], ""))
	}
	if match := quotaList.FindStringSubmatch(message); match != nil {
		for name := range strings.SplitSeq(match[1], ",") {
			all = append(all, strings.Trim(name, " []'"))
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == "" })
	if len(all) == 0 {
		return []string{"quota"}
	}
	return all
}

var (
	requestIDs = regexp.MustCompile(`\s*[(\[]?(?:Request-ID:? ?)?req-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}[)\]]?`)
	times      = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?`)
	tags       = regexp.MustCompile(`<br ?/?>`)
	ephemeral  = regexp.MustCompile(`[^\s:]+(?::[^\s:]+)*->`)
)

// stable returns a text without what differs from call to call, and without user data.
func stable(text string) string {
	text = withoutValue(text)
	text = requestIDs.ReplaceAllString(text, "")
	text = times.ReplaceAllString(text, "…")
	text = tags.ReplaceAllString(text, " ")
	return strings.Join(strings.Fields(text), " ")
}

const (
	// schemaFlaw is how Nova begins when a request is not as it should be. It goes on with the
	// whole value, twice.
	schemaFlaw = "Invalid input for field/attribute "
	// maxValue is how much of a value people want to see, in bytes.
	maxValue = 200
)

// withoutValue leaves out of Nova's words values that are long, or that hold user data.
func withoutValue(text string) string {
	head, value, has := strings.Cut(text, " Value: ")
	attribute, is := strings.CutPrefix(head, schemaFlaw)
	if !has || !is {
		return text
	}
	secret := slices.Contains([]string{"server.", "user_data.", "adminPass.", "contents."}, attribute)
	if !secret && len(value) <= maxValue {
		return text
	}
	// What is wrong comes last: "'…' is too long", "{…}. Additional properties are not allowed
	// ('nonsense' was unexpected)".
	for _, end := range []string{"}. ", "' "} {
		at := strings.LastIndex(value, end)
		if at < 0 {
			continue
		}
		if flaw := value[at+len(end):]; len(flaw) <= maxValue && !strings.Contains(flaw, "user_data") {
			return strings.TrimSuffix(head, ".") + ": " + flaw
		}
	}
	return head
}

// wordsOf says why there was no answer, without addresses: the same name has another one tomorrow,
// and each connection a port of its own.
func wordsOf(err error) string {
	if lookup, is := errors.AsType[*net.DNSError](err); is {
		return "look up " + lookup.Name + ": " + lookup.Err
	}
	if number, is := errors.AsType[syscall.Errno](err); is {
		return number.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed before the answer was complete"
	}
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		return "the connection timed out"
	}
	return stable(ephemeral.ReplaceAllString(err.Error(), ""))
}
