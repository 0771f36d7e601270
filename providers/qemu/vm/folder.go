package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Folder is the path of a machine's folder.
type Folder string

func (f Folder) file(name string) string { return filepath.Join(string(f), name) }

// Files in the folder.
const (
	recordFile  = "record.json"
	lockFile    = "lock"
	diskFile    = "disk.qcow2"
	seedFile    = "seed.iso"
	seedFolder  = "seed"
	pidFile     = "pid"
	socketFile  = "qmp.sock"
	consoleFile = "console.log"
	logFile     = "qemu.log"
)

// clear removes what a start makes beside the record, and QEMU.
func (f Folder) clear() error {
	for _, name := range []string{diskFile, seedFile, seedFolder, pidFile, socketFile, consoleFile, logFile} {
		if err := os.RemoveAll(f.file(name)); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes the folder away, the record last: by it is found what is left. The VM must not run.
func (f Folder) Remove() error {
	if err := errors.Join(f.clear(), os.RemoveAll(f.file(lockFile))); err != nil {
		return err
	}
	return os.RemoveAll(string(f))
}

// Phase is how far a VM is.
type Phase int

// The phases of a VM.
const (
	// Leftover is what a start has left that died or failed half-way: nothing of it ever ran.
	Leftover Phase = iota
	// Preparing has somebody make the disk and the seed.
	Preparing
	// Starting has a process that has not spoken on its console.
	Starting
	// Running has a process, and its firmware or system has spoken on its console.
	Running
	// PoweredOff has ended by itself: the guest or the host has switched it off.
	PoweredOff
	// Killed has run, and its process was ended by force.
	Killed
)

// HasProcess says whether there is a process of the VM, or somebody makes one.
func (p Phase) HasProcess() bool { return p == Preparing || p == Starting || p == Running }

// Phase says how far the VM is. It changes nothing.
func (f Folder) Phase() (Phase, error) {
	runs, err := isHeld(f.file(lockFile)) // first: what a process leaves when it ends is final
	if err != nil {
		return 0, err
	}
	_, err = os.Stat(f.file(pidFile))
	begun := err == nil
	console, err := os.Stat(f.file(consoleFile))
	spoke := err == nil && console.Size() > 0
	switch {
	case runs && spoke:
		return Running, nil
	case runs && begun:
		return Starting, nil
	case runs:
		return Preparing, nil
	case spoke && begun:
		return Killed, nil
	case spoke:
		return PoweredOff, nil
	}
	return Leftover, nil
}

// Kill ends the VM's process at once. It does not wait, and does nothing where there is none or
// where it has just begun. The caller has its turn of Store.Begin.
func (f Folder) Kill() error {
	raw, err := os.ReadFile(f.file(pidFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	pid, _ := strconv.Atoi(string(bytes.TrimSpace(raw)))
	if pid <= 1 {
		return nil
	}
	process, err := os.FindProcess(pid) // on Linux a handle: nobody else gets it when the pid is used again
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // nothing can be done about it
	// QEMU holds the lock for as long as it lives, and the pid was written by the one that holds it
	// now: if it still does, the handle is its.
	if runs, err := isHeld(f.file(lockFile)); err != nil || !runs {
		return err
	}
	if err := process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Console returns the last bytes that the VM wrote to its serial console, at most so many.
func (f Folder) Console(most int64) ([]byte, error) { return tail(f.file(consoleFile), most) }

// maxComplaint bounds what is told of QEMU's log.
const maxComplaint = 1 << 10

// Complaint is a sentence with the last line that QEMU has to say about itself, empty for none. It
// begins with a space, to follow another sentence.
func (f Folder) Complaint() string {
	said, _ := tail(f.file(logFile), maxComplaint) // what cannot be read says nothing
	said = bytes.TrimSpace(said)
	if len(said) == 0 {
		return ""
	}
	last := said[bytes.LastIndexByte(said, '\n')+1:]
	return " QEMU: " + string(bytes.ToValidUTF8(last, nil))
}

// tail returns the last bytes of a file, at most so many; nothing where there is no file.
func tail(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, max(0, size-most), most))
}

// ErrBusy says that another process changes something, or runs the VM.
var ErrBusy = errors.New("another process has the lock")

// acquire takes the lock on a file, which it makes if need be, and returns the open file; ErrBusy
// when somebody else has the lock. The lock belongs to the open file: a child that inherits it
// holds it, too, and it ends with the last process that has it, however that ends.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("%w on %s", ErrBusy, path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// isHeld says whether anybody has the lock on a file. It does not take it, so that it is in
// nobody's way.
func isHeld(path string) (bool, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock)
	return lock.Type != unix.F_UNLCK, err
}
