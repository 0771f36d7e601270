package launch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// together has the process lead a group of its own, and end when this one does, however that ends.
func together(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tie has the kernel kill the group of a process when this process ends, also by SIGKILL.
// Pdeathsig ends only the process itself: those that it starts do not inherit it.
//
// Both ends of a pipe stay open here, and no other process has them. The kernel closes them when
// this process ends, one after the other. Closing the first is an event on the other, and the
// kernel signals an event to that end's owner, which is the group: see fcntl(2), F_SETSIG. The
// owner is the group itself and not its number, so that no later group is meant.
//
// Processes that have left the group live on. Call untie when the group has ended.
func tie(process *os.Process) (untie func(), err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("open a pipe: %w", err)
	}
	untie = func() {
		for _, end := range ends {
			_ = unix.Close(end)
		}
	}
	for _, end := range ends {
		for _, set := range []struct{ command, value int }{
			{unix.F_SETSIG, int(unix.SIGKILL)},
			{unix.F_SETOWN, -process.Pid},
			{unix.F_SETFL, unix.O_NONBLOCK | unix.O_ASYNC},
		} {
			if _, err := unix.FcntlInt(uintptr(end), set.command, set.value); err != nil {
				untie()
				return nil, fmt.Errorf("tie the group to this process: %w", err)
			}
		}
	}
	return untie, nil
}

// reap returns when the process has ended, and the others of its group with it.
func (g *group) reap() error {
	untie, err := tie(g.command.Process)
	if err != nil {
		g.log.Warn("what the driver starts may outlive this process", "error", err)
		untie = func() {}
	}
	defer untie()
	untilEnded(g.command.Process.Pid)
	g.reaping.Lock()
	defer g.reaping.Unlock()
	killTogether(g.command.Process)
	g.reaped = true
	return g.command.Wait()
}

// untilEnded returns when a process has ended. It leaves it a zombie, so that no other group gets
// its number meanwhile.
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
