package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// processAttributes makes the kernel kill the child with its parent, and keeps it out of the
// terminal's process group: Ctrl-C reaches the parent alone, which then stops the children in
// order.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// identify returns the identity of a running process. The error is fs.ErrNotExist when there is
// none, or only its zombie.
func identify(pid int) (identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return identity{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return identity{}, errors.Join(err, os.ErrNotExist)
	}
	executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return identity{}, errors.Join(err, os.ErrNotExist) // A zombie has none.
	}
	// The second field is the command in parentheses and may hold anything; the start is field 22,
	// see proc(5).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const startField = 22 - 3
	if len(fields) <= startField {
		return identity{}, fmt.Errorf("read /proc/%d/stat: too few fields", pid)
	}
	return identity{
		Boot:       strings.TrimSpace(string(boot)),
		StartTicks: string(fields[startField]),
		// The kernel says so of a file that has been replaced since, as a rebuild does.
		Executable: strings.TrimSuffix(executable, " (deleted)"),
	}, nil
}
