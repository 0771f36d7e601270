package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Host is what VMs are made with.
type Host struct {
	// QEMU and QEMUImg are the programs, as paths or names in $PATH.
	QEMU, QEMUImg string
	Images        Images
	// Accelerator returns KVM or TCG, always the same.
	Accelerator func() string
	Bridge      Bridge
}

// ErrPending says that somebody else makes or runs the VM.
var ErrPending = errors.New("the VM is being made")

// Start makes a VM's record, disk and seed anew, and starts its process, which outlives this one.
// It does not wait for the VM to say anything. Once ctx has ended it begins no further step. What a
// start that failed has left is made anew by the next. The caller has its turn of Store.Begin, and
// the VM has not begun yet.
func (h Host) Start(ctx context.Context, f Folder, record *Record, userData []byte) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	lock, err := acquire(f.file(lockFile))
	if err != nil {
		return err
	}
	if lock == nil {
		return ErrPending
	}
	defer lock.Close() // QEMU has it by then, or nobody
	for _, name := range []string{diskFile, seedFile, seedFolder, pidFile, socketFile, consoleFile, logFile} {
		if err := os.RemoveAll(f.file(name)); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
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
	args, err := h.arguments(record)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(f.file(logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// Not CommandContext: the VM outlives the call.
	qemu := exec.Command(h.QEMU, args...)
	qemu.Dir, qemu.Stdout, qemu.Stderr, qemu.ExtraFiles = string(f), log, log, inherited
	qemu.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := qemu.Start(); err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	go qemu.Wait() //nolint:errcheck // how it ended, its folder says
	return nil
}
