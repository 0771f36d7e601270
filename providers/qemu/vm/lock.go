package vm

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// acquire takes the lock on a file, which it makes if need be, and returns the open file; nil when
// somebody else has the lock. The lock belongs to the open file: a child that inherits it holds it,
// too, and it ends with the last process that has it, however that ends.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, nil //nolint:nilnil // somebody else has it
	}
	return nil, err
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
