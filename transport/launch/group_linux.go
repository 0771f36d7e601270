package launch

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// together has the process lead a group of its own, and end when this one does, however that ends.
func together(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// untilEnded returns when a process has ended. It leaves it a zombie, so that nobody else gets its group's number meanwhile.
func untilEnded(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

func terminate(process *os.Process) { _ = process.Signal(syscall.SIGTERM) }

// killTogether ends a process and its group. Who is gone already is no error.
func killTogether(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
