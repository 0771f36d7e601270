package openstacksim

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// microversion is the second number of a version of Nova's API; the first is 2.
type microversion int

// The microversions that Nova of the release Zed speaks, and those from which on something is
// different.
const (
	leastVersion microversion = 1
	mostVersion  microversion = 93

	attachmentsSayMore  microversion = 3
	userDataShown       microversion = 3
	serverLocked        microversion = 9
	serverDescription   microversion = 19
	serverTags          microversion = 26
	networksRequired    microversion = 37
	statusChecked       microversion = 38
	flavorEmbedded      microversion = 47
	tagsAtCreation      microversion = 52
	flavorDescription   microversion = 55
	flavorExtraSpecs    microversion = 61
	trustedCertificates microversion = 63
	groupPolicy         microversion = 64
	volumeTypeAtBoot    microversion = 67
	serverGroupsShown   microversion = 71
	lockedReason        microversion = 73
	updateShowsAll      microversion = 75
	hostnameShown       microversion = 90
)

const (
	versionHeader       = "OpenStack-API-Version"
	legacyVersionHeader = "X-OpenStack-Nova-API-Version"
)

var versionForm = regexp.MustCompile(`^([1-9]\d*)\.([1-9]\d*|0)$`)

// readMicroversion returns what the headers of a request ask for, and how it is to be repeated; the
// least where they ask for none. most is the highest that Nova speaks.
func readMicroversion(h http.Header, most microversion) (version microversion, repeated string, err error) {
	wanted := h.Get(legacyVersionHeader)
	for _, one := range h.Values(versionHeader) {
		for part := range strings.SplitSeq(one, ",") {
			if version, ok := strings.CutPrefix(strings.TrimSpace(part), "compute "); ok {
				wanted = strings.TrimSpace(version)
			}
		}
	}
	switch wanted {
	case "":
		return leastVersion, leastVersion.String(), nil
	case "latest":
		return most, most.String(), nil
	}
	parts := versionForm.FindStringSubmatch(wanted)
	if parts == nil {
		return leastVersion, "", refuse(http.StatusBadRequest,
			"API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", wanted)
	}
	minor, err := strconv.Atoi(parts[2])
	if version = microversion(minor); err != nil || parts[1] != "2" || version < leastVersion || version > most {
		return leastVersion, wanted, refuse(http.StatusNotAcceptable,
			"Version %s is not supported by the API. Minimum is %s and maximum is %s.", wanted, leastVersion, most)
	}
	return version, wanted, nil
}

// maxVersion is the highest that this Nova speaks.
func (c *Cloud) maxVersion() microversion { return microversion(c.options.MaxComputeAPIVersion) }

func (v microversion) String() string { return fmt.Sprintf("2.%d", int(v)) }

// speak reads which version a call speaks. The answer repeats it, also where it is not supported.
func (t *turn) speak(most microversion) error {
	version, wanted, err := readMicroversion(t.request.Header, most)
	t.version, t.spoken = version, wanted
	return err
}

// speak adds to an answer which version it has.
func (r *reply) speak(s service, version string) {
	if s == cinder {
		r.set(versionHeader, "volume "+version)
		r.set("Vary", versionHeader)
		return
	}
	r.set(versionHeader, "compute "+version)
	r.set(legacyVersionHeader, version)
	r.header["Vary"] = []string{versionHeader, legacyVersionHeader}
}
