package session

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// The services, as calls are counted by them.
const (
	serviceIdentity = "identity"
	serviceCompute  = "compute"
	serviceNetwork  = "network"
	serviceImage    = "image"
	serviceVolume   = "volume"
)

// serviceTypes are what catalogs call the services, the best first. "volume" was Cinder's v1 once,
// "volumev2" is not v3.
func serviceTypes(service string) []string {
	switch service {
	case serviceNetwork:
		return []string{"network", "networking"}
	case serviceVolume:
		return []string{"block-storage", "block-store", "volumev3", "volume"}
	}
	return []string{service}
}

// places is where a session works. It compares: as long as it is the same, so is the session.
type places struct {
	// key is the project's, among all clouds.
	key, project, region string
	// URLs, with a slash at the end. Those of compute and volume hold their version, the others do
	// not. volume may be empty.
	compute, network, image, volume string
}

// locate chooses the endpoints from a catalog, by the account's region and interface. For each
// service gophercloud would make a call without a context, to find out versions that are known
// here.
func locate(token *projectToken, a spec.Account) (places, error) {
	l := locator{token: token, region: a.Region, kind: a.Interface}
	if l.kind == "" {
		l.kind = spec.InterfacePublic
	}
	if l.region == "" {
		var err error
		if l.region, err = l.onlyRegion(); err != nil {
			return places{}, err
		}
	}
	where := places{project: token.project.ID, region: l.region}
	where.key = strings.Join([]string{a.IdentityEndpoint, l.region, token.project.ID}, " ")
	for service, at := range map[string]*string{
		serviceCompute: &where.compute, serviceNetwork: &where.network, serviceImage: &where.image, serviceVolume: &where.volume,
	} {
		*at = l.endpoint(service)
	}
	for _, required := range []struct{ service, at string }{
		{serviceCompute, where.compute}, {serviceNetwork, where.network}, {serviceImage, where.image},
	} {
		if required.at == "" {
			return places{}, l.missing(required.service)
		}
	}
	return where, nil
}

// locator looks for endpoints of a region and of a kind: public, internal or admin.
type locator struct {
	token        *projectToken
	region, kind string
}

// endpoint returns the URL of a service, empty for one that is not there.
func (l locator) endpoint(service string) string {
	for _, name := range serviceTypes(service) {
		for _, entry := range l.token.catalog {
			if entry.Type != name {
				continue
			}
			for _, e := range entry.Endpoints {
				if e.Interface != l.kind || e.Region != l.region && e.RegionID != l.region {
					continue
				}
				if at := versioned(service, e.URL, l.token.project.ID); at != "" {
					return at
				}
			}
		}
	}
	return ""
}

// versioned returns the URL of a service in the form that places has; empty for one of another
// version or none at all.
func versioned(service, raw, project string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	path := strings.TrimRight(u.Path, "/")
	version := ""
	for segment := range strings.SplitSeq(path, "/") {
		if isVersion(segment) {
			version = segment
		}
	}
	switch service {
	case serviceCompute:
		switch version {
		case "":
			path += "/v2.1"
		case "v2":
			// The same API without microversions, on which the filters depend by which servers are
			// found.
			path = strings.Replace(path, "/v2", "/v2.1", 1)
		}
	case serviceVolume:
		if version == "" {
			path += "/v3/" + project
		}
		if version != "" && version != "v3" {
			return ""
		}
	default:
		path = strings.TrimSuffix(path, "/"+version)
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path + "/"}).String()
}

// isVersion says whether a part of a path is one, such as v2.1.
func isVersion(segment string) bool {
	number, is := strings.CutPrefix(segment, "v")
	return is && number != "" && strings.Trim(number, "0123456789.") == ""
}

// onlyRegion returns the region of a cloud that has one. Of several none is better than the other.
func (l locator) onlyRegion() (string, error) {
	regions := l.regions()
	if len(regions) == 1 {
		return regions[0], nil
	}
	if len(regions) == 0 {
		return "", l.missing(serviceCompute)
	}
	return "", absent("region", fmt.Sprintf("The cloud has several regions: name one of %s.", strings.Join(regions, ", ")))
}

// missing returns the error for a service without an endpoint, and where there is one.
func (l locator) missing(service string) error {
	text := fmt.Sprintf("The catalog has no %s endpoint of the %s service", l.kind, service)
	if l.region != "" {
		text += " in the region " + l.region
	}
	regions := l.regions()
	if len(regions) == 0 {
		return absent("region", text+", nor has it any such endpoint.")
	}
	return absent("region", text+". There are the regions "+strings.Join(regions, ", ")+".")
}

// regions are those that have a compute service, in order.
func (l locator) regions() []string {
	found := map[string]bool{}
	for _, entry := range l.token.catalog {
		if entry.Type != serviceCompute {
			continue
		}
		for _, e := range entry.Endpoints {
			if e.Interface == l.kind {
				found[regionOf(e)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func regionOf(e tokens.Endpoint) string {
	if e.RegionID != "" {
		return e.RegionID
	}
	return e.Region
}

// absent returns the error for something that a field names and that is not there, or not yet.
func absent(field, text string) error {
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND, text, sdk.WithField(field, text))
}
