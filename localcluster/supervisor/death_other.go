//go:build unix && !linux

package supervisor

import (
	"errors"
	"syscall"
)

// processAttributes keeps the child out of the terminal's process group. This kernel has no death
// signal: children of a parent that is killed with SIGKILL stay.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// identify cannot tell processes apart here, so that leftovers are never killed.
func identify(int) (identity, error) {
	return identity{}, errors.ErrUnsupported
}
