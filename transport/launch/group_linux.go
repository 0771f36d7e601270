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

// reap returns when the process has ended, and the others of its group with it.
func (g *group) reap() error {
	untilEnded(g.command.Process.Pid)
	g.reaping.Lock()
	defer g.reaping.Unlock()
	killTogether(g.command.Process)
	g.reaped = true
	return g.command.Wait()
}

// untilEnded returns when a process has ended. It leaves it a zombie, so that nobody else gets its
// group's number meanwhile.
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
