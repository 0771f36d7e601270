package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// Flaw is what is wrong with a field. It does not hold the field's value.
type Flaw struct{ Path, Description string }

// invalid is flaws as SPEC_INVALID, nil for none.
func invalid(flaws []Flaw) error {
	if len(flaws) == 0 {
		return nil
	}
	return Refusal(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, flaws)
}

// Refusal is an error that names each of the fields.
func Refusal(reason driverv1alpha1.ErrorReason, flaws []Flaw) error {
	var words []string
	var fields []sdk.ErrorOption
	for _, f := range flaws {
		words = append(words, f.Path+" "+f.Description)
		fields = append(fields, sdk.WithField(f.Path, f.Description))
	}
	return sdk.NewError(reason, strings.Join(words, "; "), fields...)
}

// The bounds of what QEMU is asked for.
const (
	maxCPUs      = 255
	minMemoryMiB = 32
	maxPort      = 65535
)

// flaws returns what is wrong with a spec that has its defaults, in the order of paths.
func (m Machine) flaws() []Flaw {
	var found []Flaw
	for _, field := range slices.Sorted(maps.Keys(m.Files())) {
		if !isLocal(m.Files()[field]) {
			found = append(found, Flaw{field, "must be a path below the driver's --image-dir, such as debian-13.qcow2"})
		}
	}
	for _, one := range []struct {
		path, description string
		wrong             bool
	}{
		{"cpus", fmt.Sprintf("must be from 1 to %d", maxCPUs), m.CPUs < 1 || m.CPUs > maxCPUs},
		{"memory", fmt.Sprintf("must be %dMi at least, written as 512Mi or 2Gi", minMemoryMiB), m.MemoryMiB() < minMemoryMiB},
		{"disk", "must be written as 512Mi or 10Gi", m.Disk != "" && m.DiskBytes() == 0},
		{"initrd", "needs kernel", m.Initrd != "" && m.Kernel == ""},
		{"kernelArguments", "needs kernel", m.KernelArguments != "" && m.Kernel == ""},
		{"kernelArguments", "must be one line", strings.ContainsAny(m.KernelArguments, "\x00\r\n")},
		{"network.type", "must be user or bridge", m.Network.Type != UserNetwork && m.Network.Type != BridgeNetwork},
		{"forwardedPorts", "needs the network user: a VM on a bridge has an address", m.Network.Type == BridgeNetwork && len(m.ForwardedPorts) > 0},
	} {
		if one.wrong {
			found = append(found, Flaw{one.path, one.description})
		}
	}
	return append(found, m.portFlaws()...)
}

func (m Machine) portFlaws() []Flaw {
	var found []Flaw
	taken := map[string]bool{}
	for i, port := range m.ForwardedPorts {
		path := fmt.Sprintf("forwardedPorts[%d]", i)
		if port.HostPort < 1 || port.HostPort > maxPort {
			found = append(found, Flaw{path + ".hostPort", "must be from 1 to 65535"})
		}
		if port.GuestPort < 1 || port.GuestPort > maxPort {
			found = append(found, Flaw{path + ".guestPort", "must be from 1 to 65535"})
		}
		if port.Protocol != "tcp" && port.Protocol != "udp" {
			found = append(found, Flaw{path + ".protocol", "must be tcp or udp"})
		}
		if taken[port.Host()] {
			found = append(found, Flaw{path + ".hostPort", "is forwarded twice"})
		}
		taken[port.Host()] = true
	}
	return found
}

// Host names the host's side of a forwarded port, as tcp/8080.
func (p Port) Host() string { return fmt.Sprintf("%s/%d", p.Protocol, p.HostPort) }

// Conflict returns SPEC_CONFLICT with the fields in which a VM that was made as m differs from
// what is wanted, nil where it does not.
func (m Machine) Conflict(wanted Machine) error {
	have, want := m.fields(), wanted.fields()
	all := maps.Clone(have)
	maps.Copy(all, want)
	var found []Flaw
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if string(have[name]) != string(want[name]) {
			found = append(found, Flaw{name, "cannot be changed on a VM"})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return Refusal(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT, found)
}

func (m Machine) fields() map[string]json.RawMessage {
	raw, _ := json.Marshal(m) // it consists of strings and numbers
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // it was just written
	return fields
}
