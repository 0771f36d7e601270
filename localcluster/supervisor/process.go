package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Command says what to run. The child inherits this process's environment, but for TMPDIR: that is
// a folder of its own, which goes when the child ends.
type Command struct {
	// Name is the process's name in logs and errors, and the name of its log file.
	Name string
	// Path is the executable.
	Path string
	Args []string
	// Env is added to the inherited environment, as KEY=value.
	Env []string
}

// Process is a child process that can be ended and started again. It is safe for concurrent use.
type Process struct {
	command    Command
	supervisor *Supervisor
	logPath    string

	// turn is held through a whole Start or Stop: there is never more than one child, and Stop
	// misses none that is coming up.
	turn sync.Mutex

	mu       sync.Mutex
	cmd      *exec.Cmd
	done     chan struct{}
	expected bool
}

// ExitError is the end of a process that nobody asked to end.
type ExitError struct {
	// Process is the Command's name.
	Process string
	// State is how it ended, as "exit status 1" or "signal: killed".
	State string
	// LogPath is where all its output is, and Tail the end of it.
	LogPath string
	Tail    string
}

// Error names the process, how it ended, and the end of what it said.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended by itself (%s); the end of %s:\n%s", e.Process, e.State, e.LogPath, e.Tail)
}

// Name returns the Command's name.
func (p *Process) Name() string { return p.command.Name }

// LogPath returns the file that holds the output of all of the process's runs.
func (p *Process) LogPath() string { return p.logPath }

// Pid returns the process id of the run under way, or 0 when there is none.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Done is closed when the run under way has ended. Without one it is closed already.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		close(p.done)
	}
	return p.done
}

// running needs p.mu held.
func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// SetArgs changes the arguments with which the process is started from now on, as an upgrade does.
func (p *Process) SetArgs(args []string) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.command.Args = slices.Clone(args)
}

// Args returns the arguments with which the process is started.
func (p *Process) Args() []string {
	p.turn.Lock()
	defer p.turn.Unlock()
	return slices.Clone(p.command.Args)
}

// SetPath changes the executable with which the process is started from now on, as an upgrade does.
func (p *Process) SetPath(path string) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.command.Path = path
}

// Path returns the executable with which the process is started.
func (p *Process) Path() string {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.command.Path
}

// Start starts the process, with its command. It does nothing to one that runs.
func (p *Process) Start() error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.Pid() != 0 {
		return nil
	}
	output, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: open log: %w", p.command.Name, err)
	}
	defer func() { _ = output.Close() }() // The child has a descriptor of its own.

	temp, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return fmt.Errorf("start %s: make a folder for its temporary files: %w", p.command.Name, err)
	}
	cmd := exec.Command(p.command.Path, p.command.Args...)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+temp), p.command.Env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = processAttributes()
	if err := p.supervisor.run(cmd.Start); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.command.Name, err), os.RemoveAll(temp))
	}
	if err := writeNote(p.notePath(), p.command.Name, cmd.Process.Pid, temp); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.command.Name, err), cmd.Process.Kill(), cmd.Wait(), os.RemoveAll(temp))
	}
	done := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.done, p.expected = cmd, done, false
	p.mu.Unlock()
	go p.wait(cmd, temp, done)
	return nil
}

// wait sees one run to its end, and removes its temporary files: a killed process cannot.
func (p *Process) wait(cmd *exec.Cmd, temp string, done chan<- struct{}) {
	err := cmd.Wait()
	if err := os.RemoveAll(temp); err != nil {
		p.supervisor.log.Warn("Temporary files stay behind", "process", p.command.Name, "error", err)
	}
	state := "exit status 0"
	if err != nil {
		state = err.Error()
	}
	_ = os.Remove(p.notePath()) // A note that stays names a process that is proven gone.
	p.mu.Lock()
	expected := p.expected
	p.mu.Unlock()
	if !expected {
		p.supervisor.report(&ExitError{Process: p.command.Name, State: state, LogPath: p.logPath, Tail: tail(p.logPath)})
	}
	close(done)
}

func (p *Process) notePath() string {
	return filepath.Join(p.supervisor.notesDir, p.command.Name+".json")
}

// Signal sends a signal to the run under way, whose end then still counts as its own. It fails when
// there is none.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("signal %s: %w", p.command.Name, os.ErrProcessDone)
	}
	return p.cmd.Process.Signal(sig)
}

// Kill ends the process with SIGKILL and returns when it is gone. It does nothing to one that does
// not run.
func (p *Process) Kill() error { return p.Stop(0) }

// Stop ends the process with SIGTERM, and with SIGKILL when it is still there after grace, and
// returns when it is gone. It does nothing to one that does not run.
func (p *Process) Stop(grace time.Duration) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	if !p.running() {
		p.mu.Unlock()
		return nil
	}
	p.expected = true
	child, done := p.cmd.Process, p.done
	p.mu.Unlock()

	if grace > 0 && child.Signal(syscall.SIGTERM) == nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-done:
			return nil
		case <-timer.C:
		}
	}
	if err := child.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.command.Name, err)
	}
	<-done
	return nil
}

// The part of a log that an error carries: enough for a panic's first frames or a usage error,
// short enough to read.
const (
	tailBytes = 4096
	tailLines = 12
)

// tail returns the last lines of a log.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	buf := make([]byte, min(info.Size(), tailBytes))
	n, err := f.ReadAt(buf, info.Size()-int64(len(buf)))
	if err != nil && n == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
