package openstacksim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// World is what exists before anybody asks for anything. Ids that are left out follow from the
// names, so that the same world has the same ids every time.
type World struct {
	// Regions are those in which every service has endpoints; Zones are those of Nova. The first
	// ones are the defaults.
	Regions []string `json:"regions,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	// Projects have the names of users that may use them, all with the password Password.
	Projects []Project `json:"projects,omitempty"`
	// Flavors, Images and so on are found by everybody; what has a Project only by that.
	Flavors        []Flavor        `json:"flavors,omitempty"`
	Images         []Image         `json:"images,omitempty"`
	Networks       []Network       `json:"networks,omitempty"`
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	ServerGroups   []ServerGroup   `json:"serverGroups,omitempty"`
	VolumeTypes    []string        `json:"volumeTypes,omitempty"`
	// KeyPairs are the names of those that each user has.
	KeyPairs []string `json:"keyPairs,omitempty"`
}

// Password is that of every user, as in the recipe for the real services.
const Password = "secret"

// Project is a project of the domain Default with the user of the same name. Admin lets the user
// see what all projects have. An application credential named after the project, whose secret is
// Password, opens it too.
type Project struct {
	Name  string `json:"name"`
	ID    string `json:"id,omitempty"`
	Admin bool   `json:"admin,omitempty"`
}

// Flavor is a size of servers; RAM is in MiB, Disk in GiB.
type Flavor struct {
	Name       string            `json:"name"`
	ID         string            `json:"id,omitempty"`
	VCPUs      int               `json:"vcpus"`
	RAM        int               `json:"ram"`
	Disk       int               `json:"disk"`
	Ephemeral  int               `json:"OS-FLV-EXT-DATA:ephemeral,omitempty"`
	ExtraSpecs map[string]string `json:"extraSpecs,omitempty"`
}

// Image is an image; MinDisk is in GiB, MinRAM in MiB. Status is active unless given.
type Image struct {
	Name       string            `json:"name"`
	ID         string            `json:"id,omitempty"`
	MinDisk    int               `json:"minDisk,omitempty"`
	MinRAM     int               `json:"minRAM,omitempty"`
	Status     string            `json:"status,omitempty"`
	Tags       []string          `json:"tags,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Network is a network of a project. The subnets of those that are not External have a router to
// each External one.
type Network struct {
	Name     string   `json:"name"`
	ID       string   `json:"id,omitempty"`
	Project  string   `json:"project"`
	External bool     `json:"external,omitempty"`
	Shared   bool     `json:"shared,omitempty"`
	Subnets  []Subnet `json:"subnets"`
}

// Subnet is a subnet; CIDR is one of IPv4.
type Subnet struct {
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
	CIDR string `json:"cidr"`
}

// SecurityGroup is a security group of a project.
type SecurityGroup struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Project string `json:"project"`
}

// ServerGroup is a server group of a project; Policy is one of affinity, anti-affinity,
// soft-affinity, soft-anti-affinity.
type ServerGroup struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Project string `json:"project"`
	Policy  string `json:"policy"`
}

// ReadWorld reads a world, written in JSON. Errors name what cannot be.
func ReadWorld(r io.Reader) (World, error) {
	var w World
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil {
		return World{}, fmt.Errorf("read the world of the cloud: %w", err)
	}
	for _, n := range w.Networks {
		for _, s := range n.Subnets {
			if _, err := netip.ParsePrefix(s.CIDR); err != nil {
				return World{}, fmt.Errorf("subnet %s of network %s: %w", s.Name, n.Name, err)
			}
		}
	}
	return w, nil
}

func (w World) empty() bool {
	return len(w.Regions) == 0 && len(w.Projects) == 0 && len(w.Networks) == 0 && len(w.Flavors) == 0 && len(w.Images) == 0
}

// With returns the world with what more has beside it.
func (w World) With(more World) World {
	return World{
		Regions: slices.Concat(w.Regions, more.Regions), Zones: slices.Concat(w.Zones, more.Zones),
		Projects: slices.Concat(w.Projects, more.Projects), Flavors: slices.Concat(w.Flavors, more.Flavors),
		Images: slices.Concat(w.Images, more.Images), Networks: slices.Concat(w.Networks, more.Networks),
		SecurityGroups: slices.Concat(w.SecurityGroups, more.SecurityGroups),
		ServerGroups:   slices.Concat(w.ServerGroups, more.ServerGroups), VolumeTypes: slices.Concat(w.VolumeTypes, more.VolumeTypes),
	}
}

// DefaultWorld is the cloud of the recipe for the real services, with a network of its own for each
// project. It also has what the manifests of MetaKube's users name.
func DefaultWorld() World {
	return World{
		Regions: []string{"RegionOne", "dbl"},
		Zones:   []string{"nova", "dbl1"},
		Projects: []Project{
			{Name: "demo"}, {Name: "alt"}, {Name: "admin", Admin: true},
		},
		Flavors: []Flavor{
			{Name: "m1.tiny", VCPUs: 1, RAM: 512, Disk: 1}, {Name: "m1.small", VCPUs: 1, RAM: 2048, Disk: 20},
			{Name: "m1.medium", VCPUs: 2, RAM: 4096, Disk: 40}, {Name: "m1.large", VCPUs: 4, RAM: 8192, Disk: 80},
			{Name: "m1.huge", VCPUs: 2000, RAM: 8192, Disk: 80}, {Name: "m1.nodisk", VCPUs: 1, RAM: 512},
			{Name: "m1.micro", VCPUs: 1, RAM: 1024, Disk: 10}, {Name: "m1.ephemeral", VCPUs: 1, RAM: 512, Disk: 1, Ephemeral: 8},
		},
		Images: []Image{
			{Name: "tiny-raw"},
			{Name: "Ubuntu Noble 24.04 (2024-08-01)", MinDisk: 4, MinRAM: 512, Properties: map[string]string{"os_distro": "ubuntu", "hw_disk_bus": "virtio"}},
			{Name: "Ubuntu Bionic 18.04 (2019-03-27)", Properties: map[string]string{"os_distro": "ubuntu"}},
			{Name: "Ubuntu 18.04 LTS sys11 optimized - 2018-08-13", Properties: map[string]string{"os_distro": "ubuntu"}},
		},
		Networks: append([]Network{
			{Name: "public", Project: "admin", External: true, Subnets: []Subnet{{Name: "public-v4", CIDR: "203.0.113.0/24"}}},
			{Name: "ext-net", Project: "admin", External: true, Subnets: []Subnet{{Name: "ext-net-v4", CIDR: "198.18.0.0/16"}}},
			{Name: "shared", Project: "admin", Shared: true, Subnets: []Subnet{{Name: "shared-v4", CIDR: "10.64.0.0/16"}}},
			{Name: "demo-net", Project: "demo", Subnets: []Subnet{{Name: "demo-subnet", CIDR: "10.0.0.0/16"}}},
			{Name: "alt-net", Project: "alt", Subnets: []Subnet{{Name: "alt-subnet", CIDR: "10.1.0.0/16"}}},
		}, seedNetworks()...),
		SecurityGroups: []SecurityGroup{
			{Name: "kubermatic-92r62cx8j6", Project: "demo"}, {Name: "metakube-mmxfcmgjkx", Project: "demo"},
		},
		ServerGroups: []ServerGroup{
			{Name: "metakube-mmxfcmgjkx", ID: "fe9dcd44-f08a-492a-9e64-4e38e1d51573", Project: "demo", Policy: "soft-anti-affinity"},
		},
		VolumeTypes: []string{"__DEFAULT__", "ssd"},
	}
}

// seedNetworks are those that the manifests of MetaKube's users name, with the subnets that they
// name by id.
func seedNetworks() []Network {
	return []Network{
		{Name: "kubermatic-92r62cx8j6", Project: "demo", Subnets: []Subnet{
			{Name: "kubermatic-92r62cx8j6", ID: "86db31c3-d5dd-4a88-bc92-ab8a148062c8", CIDR: "192.168.0.0/20"},
		}},
		{Name: "metakube-mmxfcmgjkx", Project: "demo", Subnets: []Subnet{
			{Name: "metakube-mmxfcmgjkx", ID: "2969ae04-a429-4c1b-83e3-2f76fc3a342a", CIDR: "192.168.16.0/20"},
		}},
	}
}
