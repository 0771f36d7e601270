package apicases_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// names turn what differs between runs and clouds into what does not.
type names struct{ known []named }

type named struct{ name, value string }

// add has a value stand by <name>. Of two values that one is part of, the longer one goes first.
func (n *names) add(name, value string) {
	if value == "" || slices.ContainsFunc(n.known, func(k named) bool { return k.value == value }) {
		return
	}
	n.known = append(n.known, named{name, value})
	slices.SortStableFunc(n.known, func(a, b named) int { return len(b.value) - len(a.value) })
}

func (n *names) value(name string) string {
	for _, k := range n.known {
		if k.name == name {
			return k.value
		}
	}
	return ""
}

// patterns are what has no name and differs nevertheless.
var patterns = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uuid>"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z?)`), "<time.6$1>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z?)`), "<time$1>"},
	{regexp.MustCompile(`\b(10|203|198)\.\d+\.\d+\.\d+`), "<ip>"},
	{regexp.MustCompile(`fa:16:3e(:[0-9a-f]{2}){3}`), "<mac>"},
	{regexp.MustCompile(`Keystone uri="[^"]*"`), `Keystone uri="<identity>"`},
	{regexp.MustCompile(`^compute:\w+$`), "compute:<zone>"},
	// The order of names in what is repeated is the language's.
	{regexp.MustCompile(`Value: (\{.*\})\. `), "Value: {…}. "},
	{regexp.MustCompile(`Value: \[.*\]\. \[.*\] (is|does)`), "Value: […]. […] $1"},
}

// longest is how much of a text is written, many how much else.
const (
	longest = 300
	many    = 45
)

// replace is a text in the terms of names and patterns.
func (n *names) replace(text string) string {
	for _, k := range n.known {
		text = strings.ReplaceAll(text, k.value, "<"+k.name+">")
		if escaped := url.QueryEscape(k.value); escaped != k.value {
			text = strings.ReplaceAll(text, escaped, "<"+k.name+">")
		}
	}
	for _, p := range patterns {
		text = p.pattern.ReplaceAllString(text, p.instead)
	}
	if len(text) > longest {
		return fmt.Sprintf("%s… (%d bytes)", text[:longest], len(text))
	}
	return text
}

// byKey are the values that are known by their name alone; those that are empty stay.
var byKey = map[string]string{
	"adminPass": "<password>", "hostId": "<host>", "OS-EXT-AZ:availability_zone": "<zone>", "audit_ids": "<audit ids>", "secret": "<secret>",
	"revision_number": "<number>", "checksum": "<checksum>", "os_hash_value": "<hash>", "standard_attr_id": "<number>",
}

// plain is a JSON value in the terms of names.
func (n *names) plain(key string, value any) any {
	if name, ok := byKey[key]; ok && value != nil && value != "" {
		return name
	}
	switch v := value.(type) {
	case string:
		return n.replace(sortQuery(v))
	case list:
		if len(v) > many {
			return fmt.Sprintf("(%d elements)", len(v))
		}
		plain := make(list, len(v))
		for i := range v {
			plain[i] = n.plain("", v[i])
		}
		return plain
	case object:
		if len(v) > many {
			return fmt.Sprintf("(%d names)", len(v))
		}
		plain := object{}
		for key, value := range v {
			plain[n.replace(key)] = n.plain(key, value)
		}
		return plain
	}
	return value
}

// sortQuery orders the query of a link: the services do not.
func sortQuery(text string) string {
	base, query, ok := strings.Cut(text, "?")
	if !ok || !strings.HasPrefix(base, "http") {
		return text
	}
	parts := strings.Split(query, "&")
	slices.Sort(parts)
	return base + "?" + strings.Join(parts, "&")
}

func TestReplace(t *testing.T) {
	n := &names{}
	n.add("identity root", "http://h:1")
	n.add("compute", "http://h:1/compute/v2.1")
	n.add("port", "5b5bde7a-0b57-4f34-974c-14c7de0d9451")
	for text, want := range map[string]string{
		"http://h:1/compute/v2.1/servers":                           "<compute>/servers",
		"http://h:1/v3":                                             "<identity root>/v3",
		"Port 5b5bde7a-0b57-4f34-974c-14c7de0d9451 is gone":         "Port <port> is gone",
		"Port 5b5bde7a-0b57-4f34-974c-14c7de0d9452 is gone":         "Port <uuid> is gone",
		"2026-11-22T10:03:23.000000 2026-11-22T10:03:23Z":           "<time.6> <timeZ>",
		"2026-11-22T11:03:01.000000Z":                               "<time.6Z>",
		"10.0.3.204 and fa:16:3e:fe:91:d8":                          "<ip> and <mac>",
		"compute:nova":                                              "compute:<zone>",
		"Value: {'name': 'f'}. Additional properties":               "Value: {…}. Additional properties",
		"Value: [{'uuid': 'x'}]. [{'uuid': 'x'}] is not valid":      "Value: […]. […] is not valid",
		"Invalid input for field/attribute 0. Value: . '' is short": "Invalid input for field/attribute 0. Value: . '' is short",
	} {
		if got := n.replace(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
