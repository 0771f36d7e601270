//go:build !linux

package launch

import (
	"os"
	"os/exec"
)

// Other systems than Linux run no managers, but command-line tools: there a driver that is started
// may outlive a parent that was killed, and what it has started itself.

func together(*exec.Cmd) {}

func (g *group) reap() error {
	err := g.command.Wait()
	g.reaping.Lock()
	defer g.reaping.Unlock()
	g.reaped = true
	return err
}

func terminate(process *os.Process) { _ = process.Signal(os.Interrupt) }

func killTogether(process *os.Process) { _ = process.Kill() }
