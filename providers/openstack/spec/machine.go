package spec

import "slices"

const (
	// MinComputeAPIVersion is the least microversion of Nova's API, of the release Pike: the first
	// that tags servers at their creation, by which they are found.
	MinComputeAPIVersion = "2.52"
	// ReservedPrefix begins the names of tags and metadata that are the driver's own, in whatever
	// case.
	ReservedPrefix = "millwright-"
	// MaxPorts is how many ports a machine can have.
	MaxPorts = 8
	// MaxTags is how many tags a spec can give; Nova has room for 50, and the driver and core need
	// some.
	MaxTags = 40
)

// Spec is what a machine is to be. One that Read returned is valid as far as can be told without
// the cloud; slices and maps are its own and not shared.
type Spec struct {
	Account Account
	// ComputeAPIVersion is Nova's microversion: the one that the spec names, else the least, which
	// has all that a spec can ask for.
	ComputeAPIVersion string
	// AvailabilityZone is empty for any.
	AvailabilityZone string
	// Flavor is a name or an id; never empty.
	Flavor string
	// Image is never empty.
	Image Reference
	// KeyPair is the name of a key pair of the user whose credentials are used; empty for none.
	KeyPair string
	// RootDisk is nil for the flavor's own disk.
	RootDisk *RootDisk
	// Volumes are disks beside the root disk.
	Volumes []Volume
	// Ports has at least one and at most MaxPorts: those of the field ports, one for each; else
	// those of network, networks and subnet.
	Ports []Port
	// SecurityGroups are those of each port that has none of its own; empty for the project's
	// default.
	SecurityGroups []Reference
	// FloatingIPPool is the name or id of an external network that a floating IP is made in; empty
	// for none. With it, or with FloatingIPs, a port is not foreign.
	FloatingIPPool string
	// FloatingIPReuse: one that the project has in the pool and that is free goes before a new one.
	FloatingIPReuse bool
	// FloatingIPs are addresses of floating IPs of the project, of which a free one is borrowed;
	// then FloatingIPPool is empty.
	FloatingIPs []string
	// ServerGroup is a name or id, or empty. ServerGroupField is where it stands.
	ServerGroup, ServerGroupField string
	// ConfigDrive is nil where the cloud is to decide.
	ConfigDrive *bool
	// Metadata has no key with ReservedPrefix.
	Metadata map[string]string
	// Tags holds each once, and none with ReservedPrefix.
	Tags []string
	// SchedulerHints goes to Nova as it is. It holds no "group".
	SchedulerHints map[string]any
}

// RootDisk is a volume that the server boots from, made from its image.
type RootDisk struct {
	// SizeGB is at least 1.
	SizeGB int
	// VolumeType and AvailabilityZone, which is Cinder's, are empty for the cloud's defaults.
	VolumeType, AvailabilityZone string
}

// Volume is a disk that comes and goes with the machine.
type Volume struct {
	// Name is the machine's own word for it, unique in it, and fit for a tag.
	Name string
	// SizeGB is at least 1.
	SizeGB int
	// VolumeType and AvailabilityZone, which is Cinder's, are empty for the cloud's defaults.
	VolumeType, AvailabilityZone string
	// IsLocal: it is on the host's own disk, and no volume.
	IsLocal bool
}

// HasVolumes says whether any disk is a volume of Cinder.
func (s Spec) HasVolumes() bool {
	return s.RootDisk != nil || slices.ContainsFunc(s.Volumes, func(v Volume) bool { return !v.IsLocal })
}

// Port is one of the server's network interfaces, in their order.
type Port struct {
	// ID is an existing port's, somebody else's: it is attached as it is and never changed or
	// deleted, and all below is empty.
	ID string
	// Network or Subnet can be empty: the subnet has one network, and the cloud has an only network
	// or there is an error.
	Network, Subnet Reference
	// FixedIPs is empty where the cloud is to choose, in Subnet if there is one. With it Subnet is
	// empty.
	FixedIPs []FixedIP
	// SecurityGroups is nil for those of the Spec, and empty but not nil for none.
	SecurityGroups []Reference
	// DisablePortSecurity: then SecurityGroups is empty and not nil.
	DisablePortSecurity bool
	AllowedAddressPairs []AddressPair
	// VNICType is empty for the cloud's default.
	VNICType string
	// Profile is Neutron's binding:profile, as JSON reads it.
	Profile map[string]any
	// Trunk: the port is to be the parent of a trunk.
	Trunk bool
	// Tags holds each once.
	Tags []string
	// HostID is Neutron's binding:host_id; empty where Nova chooses.
	HostID string
	// PropagateUplinkStatus is nil for the cloud's default.
	PropagateUplinkStatus *bool
	// ValueSpecs are attributes that extensions of the cloud's have.
	ValueSpecs map[string]string
	// At is what the names of the port's own fields begin with, such as "ports[1]."; empty for one
	// that is not of the field ports.
	At string
	// NetworkField and SubnetField are where Network and Subnet stand, or would.
	NetworkField, SubnetField string
}

// FixedIP is an address of a port. At least one field is set.
type FixedIP struct {
	// Subnet is empty for whichever holds the address.
	Subnet Reference
	// IPAddress is empty for any in the subnet.
	IPAddress string
}

// AddressPair is an address that a port may use beside its own.
type AddressPair struct {
	// IPAddress is an address or a CIDR.
	IPAddress string
	// MACAddress is empty for the port's own.
	MACAddress string
}
