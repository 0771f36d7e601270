package launch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// pipeGrace is how long what a process wrote is read after its end: somebody who has left its group
// may hold the pipes.
const pipeGrace = time.Second

// group is a process and those that it starts, as go-plugin runs it.
type group struct {
	log            *slog.Logger
	command        *exec.Cmd
	stdout, stderr *os.File
	// theirs are the ends of the pipes that the process has.
	theirs []*os.File
	// process is nil before Start.
	process atomic.Pointer[os.Process]
	// killed: it was killed here. asked: it was asked to end here.
	killed, asked atomic.Bool
	// reaping is held while the process is killed or its end is taken note of, which reaped is: its
	// number may be another's then.
	reaping sync.Mutex
	reaped  bool
	// done is closed when the process has ended; err is valid then.
	done chan struct{}
	err  error
}

var _ runner.Runner = &group{}

// newGroup prepares a process. Its environment is c.Env and more; log is told if it ends by itself.
func newGroup(c Command, more []string, log *slog.Logger) (*group, error) {
	g := &group{log: log, command: exec.Command(c.Path, c.Args...), done: make(chan struct{})}
	g.command.Env = append(append([]string{}, c.Env...), more...)
	for _, end := range []struct {
		ours   **os.File
		theirs *io.Writer
	}{{&g.stdout, &g.command.Stdout}, {&g.stderr, &g.command.Stderr}} {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*end.ours, *end.theirs = read, write
		g.theirs = append(g.theirs, write)
	}
	together(g.command)
	return g, nil
}

// verify compares the executable's checksum.
func (c Command) verify() error {
	if c.SHA256 == nil {
		return nil
	}
	file, err := os.Open(c.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("compute its checksum: %w", err)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, c.SHA256) {
		return fmt.Errorf("its SHA-256 is %x, and not %x as sha256 in its address says: it is another executable", got, c.SHA256)
	}
	return nil
}

// Start implements runner.Runner.
func (g *group) Start(context.Context) error {
	started := make(chan error)
	go func() {
		// The kernel ends the process together with the thread that has started it: this one stays
		// until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.command.Start()
		for _, file := range g.theirs {
			_ = file.Close()
		}
		if err == nil {
			g.process.Store(g.command.Process)
		}
		if g.killed.Load() {
			g.kill()
		}
		started <- err
		if err != nil {
			return
		}
		g.await()
	}()
	return <-started
}

// await returns when the process has ended and the others of its group with it.
func (g *group) await() {
	defer close(g.done)
	g.err = g.reap()
	if !g.asked.Load() && !g.killed.Load() {
		g.log.Warn("driver ended by itself", "pid", g.command.Process.Pid, "how", g.fate())
	}
	time.AfterFunc(pipeGrace, func() { _ = errors.Join(g.stdout.Close(), g.stderr.Close()) })
}

// endedByItself says whether the process has ended, or does so just now, and not because it was
// killed here.
func (g *group) endedByItself() bool {
	if g.process.Load() == nil {
		return false
	}
	select {
	case <-g.done:
		return !g.killed.Load() || g.command.ProcessState.Exited()
	case <-time.After(pipeGrace):
		return false
	}
}

// fate says how the process ended.
func (g *group) fate() string { return g.command.ProcessState.String() }

// end asks the process to end, and ends it with force when it does not in time. It returns when it
// has ended.
func (g *group) end() {
	process := g.process.Load()
	if process == nil {
		return
	}
	g.asked.Store(true)
	terminate(process)
	select {
	case <-g.done:
	case <-time.After(endTimeout):
		g.kill()
		<-g.done
	}
}

// kill ends the whole group at once.
func (g *group) kill() {
	g.reaping.Lock()
	defer g.reaping.Unlock()
	if g.reaped {
		return
	}
	g.killed.Store(true)
	if process := g.process.Load(); process != nil {
		killTogether(process)
	}
}

// Wait implements runner.Runner.
func (g *group) Wait(context.Context) error {
	<-g.done
	return g.err
}

// Kill implements runner.Runner.
func (g *group) Kill(context.Context) error {
	g.kill()
	return nil
}

// Stdout implements runner.Runner.
func (g *group) Stdout() io.ReadCloser { return g.stdout }

// Stderr implements runner.Runner.
func (g *group) Stderr() io.ReadCloser { return g.stderr }

// Name implements runner.Runner.
func (g *group) Name() string { return g.command.Path }

// ID implements runner.Runner; it is empty before Start.
func (g *group) ID() string {
	process := g.process.Load()
	if process == nil {
		return ""
	}
	return strconv.Itoa(process.Pid)
}

// Diagnose implements runner.Runner.
func (g *group) Diagnose(context.Context) string {
	return "a driver that is started has to be served by the SDK, or to speak go-plugin's protocol on stdout"
}

// PluginToHost implements runner.Runner: both have the same files and addresses.
func (g *group) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (g *group) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
