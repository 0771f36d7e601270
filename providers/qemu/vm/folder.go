package vm

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Folder is the path of a machine's folder.
type Folder string

func (f Folder) file(name string) string { return filepath.Join(string(f), name) }

// Files in the folder.
const (
	lockFile    = "lock"
	diskFile    = "disk.qcow2"
	seedFile    = "seed.iso"
	seedFolder  = "seed"
	pidFile     = "pid"
	socketFile  = "qmp.sock"
	consoleFile = "console.log"
	logFile     = "qemu.log"
)

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

// Phase says how far the VM is. It changes nothing.
func (f Folder) Phase() (Phase, error) {
	runs, err := f.Runs() // first: what a process leaves when it ends is final
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

// Runs says whether there is a process of the VM, or somebody makes one.
func (f Folder) Runs() (bool, error) { return isHeld(f.file(lockFile)) }

// Kill ends the VM's process at once. It does not wait, and does nothing where there is none or
// where it has just begun. The caller has its turn of Store.Begin.
func (f Folder) Kill() error {
	raw, err := os.ReadFile(f.file(pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(raw)))
	if err != nil || pid <= 1 {
		return nil
	}
	process, err := os.FindProcess(pid) // on Linux a handle: nobody else gets it when the pid is used again
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // nothing can be done about it
	// QEMU holds the lock for as long as it lives, and the pid was written by the one that holds it
	// now: if it still does, the handle is its.
	if runs, err := f.Runs(); err != nil || !runs {
		return err
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Console returns the last bytes that the VM wrote to its serial console, at most so many.
func (f Folder) Console(most int64) ([]byte, error) { return tail(f.file(consoleFile), most) }

// maxComplaint bounds what is told of QEMU's log.
const maxComplaint = 1 << 10

// Complaint is the last line that QEMU has to say about itself, empty for none.
func (f Folder) Complaint() string {
	said, err := tail(f.file(logFile), maxComplaint)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	return string(bytes.ToValidUTF8(bytes.TrimSpace(lines[len(lines)-1]), nil))
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
