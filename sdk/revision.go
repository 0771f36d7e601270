package sdk

import (
	"slices"

	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// legacyTypes are the address types as revision 1 of the contract has them.
var legacyTypes = map[driverv1alpha1.AddressType]string{
	driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP:  "InternalIP",
	driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_IP:  "ExternalIP",
	driverv1alpha1.AddressType_ADDRESS_TYPE_HOSTNAME:     "Hostname",
	driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_DNS: "InternalDNS",
	driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_DNS: "ExternalDNS",
}

// withLegacyTypes returns an answer that also says, for a core of revision 1, what its addresses
// are. It is a copy: the driver may keep its machines. It goes with revision 3.
func withLegacyTypes(answer any) any {
	message, is := answer.(proto.Message)
	if !is || !slices.ContainsFunc(machinesIn(answer), func(m *driverv1alpha1.Machine) bool { return len(m.GetAddresses()) > 0 }) {
		return answer
	}
	message = proto.Clone(message)
	for _, m := range machinesIn(message) {
		for _, a := range m.GetAddresses() {
			a.LegacyType = legacyTypes[a.GetType()] //nolint:staticcheck // it is deprecated, and filled in for those that read it
		}
	}
	return message
}

// machinesIn are the machines of an answer.
func machinesIn(answer any) []*driverv1alpha1.Machine {
	switch a := answer.(type) {
	case interface {
		GetMachine() *driverv1alpha1.Machine
	}:
		return []*driverv1alpha1.Machine{a.GetMachine()}
	case *driverv1alpha1.ListMachinesResponse:
		return a.GetMachines()
	}
	return nil
}
