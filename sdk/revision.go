package sdk

import (
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

// setLegacyTypes fills in, for a core of revision 1, what the addresses of an answer are. It goes
// with revision 3.
func setLegacyTypes(answer any) {
	var machines []*driverv1alpha1.Machine
	switch a := answer.(type) {
	case interface {
		GetMachine() *driverv1alpha1.Machine
	}:
		machines = append(machines, a.GetMachine())
	case *driverv1alpha1.ListMachinesResponse:
		machines = a.GetMachines()
	}
	for _, m := range machines {
		for _, a := range m.GetAddresses() {
			a.LegacyType = legacyTypes[a.GetType()] //nolint:staticcheck // it is deprecated, and filled in for those that read it
		}
	}
}
