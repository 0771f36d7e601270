package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Host is what VMs are made with.
type Host struct {
	// QEMU and QEMUImg are the programs, as paths or names in $PATH.
	QEMU, QEMUImg string
	// Images is the folder whose files specs may name, as an absolute path.
	Images Images
	// Accelerator is KVM or TCG.
	Accelerator string
	// Bridge is that of VMs with the network bridge; without a name there is none.
	Bridge Bridge
}

// Start makes a VM's record, disk and seed anew, and starts its process, which outlives this one.
// It does not wait for the VM to say anything. Once ctx has ended it begins no further step. What a
// start that failed has left is made anew by the next. ErrBusy says that somebody else makes or
// runs the VM. The caller has its turn of Store.Begin, has found the spec's files below Images, and
// the VM has not begun yet.
func (h Host) Start(ctx context.Context, f Folder, record *Record, userData []byte) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	lock, err := acquire(f.file(lockFile))
	if err != nil {
		return err
	}
	defer lock.Close() // QEMU has it by then, or nobody
	for _, step := range []func() error{
		f.clear,
		func() error { return f.Write(record) },
		func() error { return h.makeDisk(ctx, f, record, lock) },
		func() error { return f.writeSeed(record, userData, h.Bridge) },
		func() error { return h.startProcess(f, record, lock) },
	} {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// makeDisk makes the VM's disk: what it has not written itself is read from the image. qemu-img
// holds the lock, too: it goes on when this process is killed.
func (h Host) makeDisk(ctx context.Context, f Folder, record *Record, lock *os.File) error {
	image, err := h.Images.Image(record.Spec.Image)
	if err != nil {
		return err
	}
	size := max(image.Bytes, record.Spec.DiskBytes())
	qemuImg := exec.CommandContext(ctx, h.QEMUImg, "create", "-q", "-f", "qcow2", "-F", image.Format, "-b", image.Path, diskFile, strconv.FormatInt(size, 10))
	qemuImg.Dir, qemuImg.ExtraFiles = string(f), []*os.File{lock}
	if said, err := qemuImg.CombinedOutput(); err != nil {
		return fmt.Errorf("qemu-img create: %w: %s", err, said)
	}
	return nil
}

// startProcess starts QEMU in a session of its own. It inherits the lock, and on a bridge the tap.
func (h Host) startProcess(f Folder, record *Record, lock *os.File) error {
	inherited := []*os.File{lock}
	if record.Address.IsValid() {
		tap, err := h.Bridge.openTap()
		if err != nil {
			return err
		}
		defer tap.Close()
		inherited = append(inherited, tap)
	}
	log, err := os.OpenFile(f.file(logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// Not CommandContext: the VM outlives the call.
	qemu := exec.Command(h.QEMU, h.arguments(record)...)
	qemu.Dir, qemu.Stdout, qemu.Stderr, qemu.ExtraFiles = string(f), log, log, inherited
	qemu.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := qemu.Start(); err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	go qemu.Wait() //nolint:errcheck // how it ended, its folder says
	return nil
}

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
func (h Host) arguments(record *Record) []string {
	m := record.Spec
	args := slices.Concat([]string{
		"-name", "millwright-" + record.UID, "-nodefaults", "-no-user-config", "-display", "none",
		"-m", strconv.FormatInt(m.MemoryMiB(), 10), "-smp", strconv.Itoa(m.CPUs),
		// A VM whose process has ended is never started again: nobody reads what was not yet on
		// the disk.
		"-drive", "file=" + diskFile + ",format=qcow2,if=virtio,cache=unsafe,discard=unmap",
		"-drive", "file=" + seedFile + ",format=raw,if=virtio,readonly=on",
		"-chardev", "file,id=console,path=" + consoleFile + ",append=on", "-serial", "chardev:console",
		"-chardev", "socket,id=qmp,path=" + socketFile + ",server=on,wait=off", "-mon", "chardev=qmp,mode=control",
		"-pidfile", pidFile, "-device", "virtio-rng-pci",
	}, platform[runtime.GOARCH], acceleratorArguments(h.Accelerator), network(record))
	if m.Kernel == "" {
		return append(args, firmware[runtime.GOARCH]...)
	}
	args = append(args, "-kernel", filepath.Join(string(h.Images), m.Kernel), "-append", m.KernelArguments)
	if m.Initrd == "" {
		return args
	}
	return append(args, "-initrd", filepath.Join(string(h.Images), m.Initrd))
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
