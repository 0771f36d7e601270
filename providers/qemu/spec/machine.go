// Package spec is the cloudProviderSpec of the QEMU driver: what users write, its defaults, and
// what is wrong with it. It reads nothing but the spec.
package spec

import (
	_ "embed" // for the schema
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/millwright-dev/millwright/sdk"
)

// Schema is the JSON Schema of [Machine].
//
//go:embed schema.json
var Schema []byte

// Network types.
const (
	// UserNetwork is QEMU's own network: a VM behind it reaches others, and nobody reaches it.
	UserNetwork = "user"
	// BridgeNetwork gives a VM a tap on the operator's bridge, and an address of its own.
	BridgeNetwork = "bridge"
)

// Machine is a cloudProviderSpec. A VM keeps all of it.
type Machine struct {
	// Image, Kernel and Initrd are paths below the driver's folder of images.
	Image           string  `json:"image"`
	Kernel          string  `json:"kernel,omitempty"`
	Initrd          string  `json:"initrd,omitempty"`
	KernelArguments string  `json:"kernelArguments,omitempty"`
	CPUs            int     `json:"cpus,omitempty"`
	Memory          string  `json:"memory,omitempty"`
	Disk            string  `json:"disk,omitempty"`
	Network         Network `json:"network,omitzero"`
	ForwardedPorts  []Port  `json:"forwardedPorts,omitempty"`
}

// Network says how a VM reaches others.
type Network struct {
	Type string `json:"type,omitempty"`
}

// Port is a port of the host's loopback that leads to one of a VM.
type Port struct {
	HostPort  int    `json:"hostPort"`
	GuestPort int    `json:"guestPort"`
	Protocol  string `json:"protocol,omitempty"`
}

// The defaults of fields that are not set.
const (
	defaultCPUs   = 2
	defaultMemory = "2Gi"
)

// Read returns the machine of a cloudProviderSpec, with defaults. An error is SPEC_INVALID and
// names each field that is wrong.
func Read(raw []byte) (Machine, error) {
	var m Machine
	if err := sdk.ReadSpec(raw, &m); err != nil {
		return Machine{}, err
	}
	m = m.withDefaults()
	return m, invalid(m.flaws())
}

func (m Machine) withDefaults() Machine {
	if m.CPUs == 0 {
		m.CPUs = defaultCPUs
	}
	if m.Memory == "" {
		m.Memory = defaultMemory
	}
	if m.Network.Type == "" {
		m.Network.Type = UserNetwork
	}
	ports := make([]Port, len(m.ForwardedPorts))
	for i, port := range m.ForwardedPorts {
		if port.Protocol == "" {
			port.Protocol = "tcp"
		}
		ports[i] = port
	}
	m.ForwardedPorts = ports
	return m
}

// Default returns a spec with the defaults of the fields that it leaves out. What else is wrong
// with it is not judged.
func Default(raw []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, invalid([]Flaw{{"cloudProviderSpec", "is not a JSON object"}})
	}
	for name, value := range map[string]any{
		"cpus": defaultCPUs, "memory": defaultMemory, "network": Network{Type: UserNetwork},
	} {
		if _, set := fields[name]; !set {
			fields[name], _ = json.Marshal(value) // these can be written
		}
	}
	return json.Marshal(fields)
}

// MemoryMiB is the VM's memory in MiB.
func (m Machine) MemoryMiB() int64 { return Mebibytes(m.Memory) }

// DiskBytes is the size of the VM's disk in bytes, 0 for that of its image.
func (m Machine) DiskBytes() int64 { return Mebibytes(m.Disk) << 20 }

var quantity = regexp.MustCompile(`^([1-9][0-9]{0,8})(Mi|Gi)$`)

// Mebibytes reads a quantity such as 512Mi or 2Gi; 0 where it is none.
func Mebibytes(text string) int64 {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return 0
	}
	n, _ := strconv.ParseInt(parts[1], 10, 64) // at most nine digits
	if parts[2] == "Gi" {
		n <<= 10
	}
	return n
}

// Files are the paths below the folder of images that the spec names, by their fields.
func (m Machine) Files() map[string]string {
	files := map[string]string{"image": m.Image}
	if m.Kernel != "" {
		files["kernel"] = m.Kernel
	}
	if m.Initrd != "" {
		files["initrd"] = m.Initrd
	}
	return files
}

// isLocal says whether a path stays in the folder that it is given for.
func isLocal(path string) bool { return path != "." && filepath.IsLocal(path) }
