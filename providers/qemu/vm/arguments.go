package vm

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// tapDescriptor is the tap's number in QEMU: the second file that it inherits, after the three
// standard ones and the lock.
const tapDescriptor = 4

// platform is what differs between architectures.
var platform = map[string][]string{
	"amd64": {"-machine", "pc,graphics=off"},
	"arm64": {"-machine", "virt"},
}

// firmware is what boots a VM without a kernel of its own, where QEMU does not choose well.
var firmware = map[string][]string{
	"arm64": {"-bios", "QEMU_EFI.fd"},
}

// arguments are QEMU's, for a process in the VM's folder. They hold no user data.
func (h Host) arguments(record *Record) ([]string, error) {
	m := record.Spec
	args := []string{
		"-name", "millwright-" + record.UID, "-nodefaults", "-no-user-config", "-display", "none",
		"-m", strconv.FormatInt(m.MemoryMiB(), 10), "-smp", strconv.Itoa(m.CPUs),
		// A VM whose process has ended is never started again: nobody reads what was not yet on
		// the disk.
		"-drive", "file=" + diskFile + ",format=qcow2,if=virtio,cache=unsafe,discard=unmap",
		"-drive", "file=" + seedFile + ",format=raw,if=virtio,readonly=on",
		"-chardev", "file,id=console,path=" + consoleFile + ",append=on", "-serial", "chardev:console",
		"-chardev", "socket,id=qmp,path=" + socketFile + ",server=on,wait=off", "-mon", "chardev=qmp,mode=control",
		"-pidfile", pidFile, "-device", "virtio-rng-pci",
	}
	args = append(args, platform[runtime.GOARCH]...)
	args = append(args, acceleratorArguments(h.Accelerator())...)
	args = append(args, network(record)...)
	if m.Kernel == "" {
		return append(args, firmware[runtime.GOARCH]...), nil
	}
	kernel, err := h.Images.Path(m.Kernel)
	if err != nil {
		return nil, err
	}
	args = append(args, "-kernel", kernel, "-append", m.KernelArguments)
	if m.Initrd == "" {
		return args, nil
	}
	initrd, err := h.Images.Path(m.Initrd)
	return append(args, "-initrd", initrd), err
}

func network(record *Record) []string {
	if record.Address.IsValid() {
		return []string{
			"-netdev", fmt.Sprintf("tap,id=net,fd=%d", tapDescriptor),
			"-device", "virtio-net-pci,netdev=net,mac=" + mac(record.Address),
		}
	}
	user := []string{"user", "id=net"}
	for _, port := range record.Spec.ForwardedPorts {
		user = append(user, fmt.Sprintf("hostfwd=%s:127.0.0.1:%d-:%d", port.Protocol, port.HostPort, port.GuestPort))
	}
	return []string{"-netdev", strings.Join(user, ","), "-device", "virtio-net-pci,netdev=net"}
}
