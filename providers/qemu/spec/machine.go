// Package spec is the cloudProviderSpec of the QEMU driver: what users write, its defaults, and
// what is wrong with it. It reads nothing but the spec.
package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/sdk"
)

// Network types.
const (
	// UserNetwork is QEMU's own network: a VM behind it reaches others, and nobody reaches it.
	UserNetwork = "user"
	// BridgeNetwork gives a VM a tap on the operator's bridge, and an address of its own.
	BridgeNetwork = "bridge"
)

// Machine is a cloudProviderSpec. A VM keeps all of it. Its tags are also its schema.
type Machine struct {
	Image           string  `json:"image" jsonschema:"minLength=1" jsonschema_description:"The disk image that the VM's disk begins as: a path below the driver's --image-dir. qcow2 or raw."`
	Kernel          string  `json:"kernel,omitempty" jsonschema:"minLength=1" jsonschema_description:"Boot this kernel instead of the image's boot loader: a path below --image-dir."`
	Initrd          string  `json:"initrd,omitempty" jsonschema:"minLength=1" jsonschema_description:"The initial RAM disk of that kernel: a path below --image-dir."`
	KernelArguments string  `json:"kernelArguments,omitempty" jsonschema:"minLength=1" jsonschema_description:"The command line of that kernel, such as root=/dev/vda rw console=ttyS0."`
	CPUs            int     `json:"cpus,omitempty" jsonschema:"minimum=1,maximum=255,default=2" jsonschema_description:"Virtual CPUs."`
	Memory          string  `json:"memory,omitempty" jsonschema:"pattern=^[1-9][0-9]{0\\,8}(Mi|Gi)$,default=2Gi" jsonschema_description:"Memory of the VM."`
	Disk            string  `json:"disk,omitempty" jsonschema:"pattern=^[1-9][0-9]{0\\,8}(Mi|Gi)$" jsonschema_description:"Size of the VM's disk, at least that of the image, which is the default."`
	Network         Network `json:"network,omitzero"`
	ForwardedPorts  []Port  `json:"forwardedPorts,omitempty" jsonschema_description:"Ports of the host's loopback that lead to the VM. For the network user."`
}

// Network says how a VM reaches others.
type Network struct {
	Type string `json:"type,omitempty" jsonschema:"enum=user,enum=bridge,default=user" jsonschema_description:"user: each VM has a network of its own behind QEMU; it reaches others, and nobody reaches it. bridge: an address of its own on the bridge that the driver was given."`
}

// Port is a port of the host's loopback that leads to one of a VM.
type Port struct {
	HostPort  int    `json:"hostPort" jsonschema:"minimum=1,maximum=65535"`
	GuestPort int    `json:"guestPort" jsonschema:"minimum=1,maximum=65535"`
	Protocol  string `json:"protocol,omitempty" jsonschema:"enum=tcp,enum=udp,default=tcp"`
}

// Host names the host's side of a forwarded port, as tcp/8080.
func (p Port) Host() string { return fmt.Sprintf("%s/%d", p.Protocol, p.HostPort) }

// defaults are the fields that are set where a spec leaves them out.
const defaults = `{"cpus": 2, "memory": "2Gi", "network": {"type": "user"}}`

// Default returns a spec with the defaults of the fields that it leaves out. What else is wrong
// with it is not judged.
func Default(raw []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(defaults), &fields) // they can be read
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, sdk.ReadSpec(raw, &Machine{}) // no object: it says so
	}
	return json.Marshal(fields)
}

// Read returns the machine of a cloudProviderSpec, with defaults. An error is SPEC_INVALID and
// names each field that is wrong.
func Read(raw []byte) (Machine, error) {
	var m Machine
	_ = json.Unmarshal([]byte(defaults), &m) // they can be read
	if err := sdk.ReadSpec(raw, &m); err != nil {
		return Machine{}, err
	}
	for i, port := range m.ForwardedPorts {
		m.ForwardedPorts[i].Protocol = cmp.Or(port.Protocol, "tcp")
	}
	return m, m.flaws().Refuse(sdk.ReasonSpecInvalid)
}

// The bounds of what QEMU is asked for.
const (
	maxCPUs      = 255
	minMemoryMiB = 32
	maxPort      = 65535
)

// flaws returns what is wrong with a spec that has its defaults.
func (m Machine) flaws() *Flaws {
	found := &Flaws{}
	for _, file := range m.Files() {
		outside := file.Path == "." || !filepath.IsLocal(file.Path)
		found.Add(outside, file.Field, "must be a path below the driver's --image-dir, such as debian-13.qcow2")
	}
	onBridge, kernelless := m.Network.Type == BridgeNetwork, m.Kernel == ""
	found.Add(m.CPUs < 1 || m.CPUs > maxCPUs, "cpus", fmt.Sprintf("must be from 1 to %d", maxCPUs))
	found.Add(m.MemoryMiB() < minMemoryMiB, "memory", fmt.Sprintf("must be %dMi at least, written as 512Mi or 2Gi", minMemoryMiB))
	found.Add(m.Disk != "" && m.DiskBytes() == 0, "disk", "must be written as 512Mi or 10Gi")
	found.Add(m.Initrd != "" && kernelless, "initrd", "needs kernel")
	found.Add(m.KernelArguments != "" && kernelless, "kernelArguments", "needs kernel")
	found.Add(strings.ContainsAny(m.KernelArguments, "\x00\r\n"), "kernelArguments", "must be one line")
	found.Add(m.Network.Type != UserNetwork && !onBridge, "network.type", "must be user or bridge")
	found.Add(onBridge && len(m.ForwardedPorts) > 0, "forwardedPorts", "needs the network user: a VM on a bridge has an address")
	taken := map[string]bool{}
	for i, port := range m.ForwardedPorts {
		path := fmt.Sprintf("forwardedPorts[%d]", i)
		found.Add(port.HostPort < 1 || port.HostPort > maxPort, path+".hostPort", "must be from 1 to 65535")
		found.Add(port.GuestPort < 1 || port.GuestPort > maxPort, path+".guestPort", "must be from 1 to 65535")
		found.Add(port.Protocol != "tcp" && port.Protocol != "udp", path+".protocol", "must be tcp or udp")
		found.Add(taken[port.Host()], path+".hostPort", "is forwarded twice")
		taken[port.Host()] = true
	}
	return found
}

// Conflict returns SPEC_CONFLICT with the fields in which a VM that was made as m differs from
// what is wanted, nil where it does not.
func (m Machine) Conflict(wanted Machine) error {
	var found Flaws
	have, want := reflect.ValueOf(m), reflect.ValueOf(wanted)
	for i := range have.NumField() {
		name, _, _ := strings.Cut(have.Type().Field(i).Tag.Get("json"), ",")
		// As text: a list that is empty is the same as none.
		found.Add(fmt.Sprint(have.Field(i)) != fmt.Sprint(want.Field(i)), name, "cannot be changed on a VM")
	}
	return found.Refuse(sdk.ReasonSpecConflict)
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

// File is a path below the folder of images, and the field that names it.
type File struct{ Field, Path string }

// Files are those that the spec names, the image first.
func (m Machine) Files() []File {
	files := []File{{"image", m.Image}, {"kernel", m.Kernel}, {"initrd", m.Initrd}}
	return slices.DeleteFunc(files, func(f File) bool { return f.Path == "" && f.Field != "image" })
}

// Flaws are what is wrong with fields. They do not hold the fields' values.
type Flaws struct {
	words  []string
	fields []sdk.ErrorOption
}

// Add notes what a field must be, if it is wrong.
func (f *Flaws) Add(wrong bool, field, description string) {
	if wrong {
		f.words = append(f.words, field+" "+description)
		f.fields = append(f.fields, sdk.WithField(field, description))
	}
}

// Refuse returns an error that names each of the fields, nil where there is none.
func (f *Flaws) Refuse(reason sdk.ErrorReason) error {
	if len(f.words) == 0 {
		return nil
	}
	return sdk.NewError(reason, strings.Join(f.words, "; "), f.fields...)
}
