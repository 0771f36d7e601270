package network

import (
	"fmt"
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// refuseAs returns an error of Neutron of a kind, which its answers call type.
func refuseAs(status int, kind, format string, args ...any) error {
	return &api.Refusal{Status: status, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func notUUID(name, id string) error {
	return refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for %s. Reason: '%s' is not a valid UUID.", name, id)
}

// forbidden is what policy says of a rule.
func forbidden(rule string) error {
	return refuseAs(http.StatusForbidden, "PolicyNotAuthorized", "%s is disallowed by policy", rule)
}

// overQuota is what Neutron says of what is one too many.
func overQuota(kind string) error {
	return refuseAs(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['%s'].", kind)
}

// exhausted is what Neutron says of a network that has no addresses any more.
func exhausted(network string) error {
	return refuseAs(http.StatusConflict, "IpAddressGenerationFailure", "No more IP addresses available on network %s.", network)
}
