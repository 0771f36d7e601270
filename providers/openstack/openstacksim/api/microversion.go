package api

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Microversion is the second number of a version of Nova's API; the first is 2. Package compute
// says which of them changed what.
type Microversion int

// LeastMicroversion is what a call speaks that does not say.
const LeastMicroversion Microversion = 1

// The headers in which calls say, and answers repeat, which version they speak. The legacy one is
// Nova's alone.
const (
	VersionHeader       = "OpenStack-API-Version"
	LegacyVersionHeader = "X-OpenStack-Nova-API-Version"
)

var versionForm = regexp.MustCompile(`^([1-9]\d*)\.([1-9]\d*|0)$`)

// readMicroversion returns what the headers of a request ask for, and how it is to be repeated; the
// least where they ask for none. most is the highest that Nova speaks.
func readMicroversion(h http.Header, most Microversion) (version Microversion, repeated string, err error) {
	wanted := h.Get(LegacyVersionHeader)
	for _, one := range h.Values(VersionHeader) {
		for part := range strings.SplitSeq(one, ",") {
			if version, ok := strings.CutPrefix(strings.TrimSpace(part), "compute "); ok {
				wanted = strings.TrimSpace(version)
			}
		}
	}
	switch wanted {
	case "":
		return LeastMicroversion, LeastMicroversion.String(), nil
	case "latest":
		return most, most.String(), nil
	}
	parts := versionForm.FindStringSubmatch(wanted)
	if parts == nil {
		return LeastMicroversion, "", Refuse(http.StatusBadRequest,
			"API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", wanted)
	}
	minor, err := strconv.Atoi(parts[2])
	if version = Microversion(minor); err != nil || parts[1] != "2" || version < LeastMicroversion || version > most {
		return LeastMicroversion, wanted, Refuse(http.StatusNotAcceptable,
			"Version %s is not supported by the API. Minimum is %s and maximum is %s.", wanted, LeastMicroversion, most)
	}
	return version, wanted, nil
}

func (v Microversion) String() string { return fmt.Sprintf("2.%d", int(v)) }

// ReadMicroversion reads which version a call speaks, of those up to most. The answer repeats it,
// also where it is not supported.
func (call *Call) ReadMicroversion(most Microversion) error {
	version, wanted, err := readMicroversion(call.Request.Header, most)
	call.Version, call.Spoken = version, wanted
	return err
}

// Speak adds to an answer of Nova or Cinder which version it has.
func (r *Reply) Speak(s Service, version string) {
	if s == Cinder {
		r.Set(VersionHeader, "volume "+version)
		r.Set("Vary", VersionHeader)
		return
	}
	r.Set(VersionHeader, "compute "+version)
	r.Set(LegacyVersionHeader, version)
	r.Header["Vary"] = []string{VersionHeader, LegacyVersionHeader}
}
