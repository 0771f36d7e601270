package compute

import (
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// listZones implements GET /os-availability-zone.
func listZones(nova *Nova, _ *api.Call) (api.Reply, error) {
	zones := []api.Object{}
	for _, zone := range slices.Sorted(slices.Values(nova.options.Zones)) {
		zones = append(zones, api.Object{"zoneName": zone, "zoneState": api.Object{"available": true}, "hosts": nil})
	}
	return api.OK(api.Object{"availabilityZoneInfo": zones})
}

// listKeypairs implements GET /os-keypairs.
func listKeypairs(nova *Nova, _ *api.Call) (api.Reply, error) {
	pairs := []api.Object{}
	for _, name := range nova.options.KeyPairs {
		pairs = append(pairs, api.Object{"keypair": api.Object{"name": name, "fingerprint": keyFingerprint, "public_key": "ssh-ed25519 AAAA"}})
	}
	return api.OK(api.Object{"keypairs": pairs})
}

// keyFingerprint is that of every key pair.
const keyFingerprint = "00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff"
