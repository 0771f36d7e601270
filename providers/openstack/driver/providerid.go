package driver

import (
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

const (
	// providerIDPrefix is what the cloud controller manager of OpenStack begins
	// Node.spec.providerID with; the server's id follows.
	providerIDPrefix = providerIDScheme + "/"
	// providerIDScheme begins it where that names the region, which the manager does with
	// OS_CCM_REGIONAL=true; "REGION/" follows.
	providerIDScheme = "openstack://"
	// kubermaticPrefix begins what Kubermatic's machine-controller sets where no manager does.
	kubermaticPrefix = "kubermatic://openstack/"
)

// serverIDOf returns the id of the server that a request names, in either form; empty where it
// names none that could be one.
func serverIDOf(r machineCall) string {
	named, _ := r.(interface{ GetProviderId() string })
	if named == nil {
		return ""
	}
	text := named.GetProviderId()
	id, ours := strings.CutPrefix(text, kubermaticPrefix)
	if !ours {
		text, ours = strings.CutPrefix(text, providerIDScheme)
		_, id, _ = strings.Cut(text, "/")
	}
	if _, err := uuid.Parse(id); err != nil || !ours {
		return ""
	}
	return id
}

// providerIDs returns the forms of a server's provider_id, the one to write down first. The one
// that names the region is none of them where a region cannot stand in it.
func providerIDs(region, id string, regional bool) []string {
	all := []string{providerIDPrefix + id, kubermaticPrefix + id}
	if region == "" || strings.ContainsFunc(region, func(r rune) bool { return r == '/' || !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return all
	}
	at := 1
	if regional {
		at = 0
	}
	return slices.Insert(all, at, providerIDScheme+region+"/"+id)
}
