//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package socket

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock is a locked file. The kernel releases it when the process dies, however that comes about.
type lock struct{ file *os.File }

// acquire locks the file at path, or returns ErrInUse.
func acquire(path string) (*lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			file.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, ErrInUse
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if isAt(file, path) {
			return &lock{file: file}, nil
		}
		// Its last owner removed it after we had opened it: that lock is worth nothing.
		file.Close()
	}
}

// isAt says whether the file is the one that path names now.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// release removes the file and unlocks it, in this order: nobody can lock it in between and have it
// removed.
func (l *lock) release() {
	_ = os.Remove(l.file.Name())
	l.file.Close()
}
