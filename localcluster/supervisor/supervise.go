package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrInUse is returned by [New] when another live process supervises the same directory.
var ErrInUse = errors.New("directory is in use by another process")

// Supervisor starts processes and sees them to their end. Make one with [New]; it is safe for
// concurrent use.
type Supervisor struct {
	notesDir string
	logsDir  string
	log      *slog.Logger
	lock     *os.File
	forks    chan fork
	quit     chan struct{}
	exits    chan *ExitError

	mu        sync.Mutex
	processes []*Process
	closed    bool
}

// fork asks the forking thread for one start.
type fork struct {
	start func() error
	done  chan<- error
}

// New takes the directory, ends what an earlier Supervisor of it left running, and returns a
// Supervisor of it. Logs go to dir/logs, notes of processes to dir/run. The error is [ErrInUse]
// when the directory is taken.
func New(dir string, log *slog.Logger) (*Supervisor, error) {
	s := &Supervisor{
		notesDir: filepath.Join(dir, "run"),
		logsDir:  filepath.Join(dir, "logs"),
		log:      log,
		forks:    make(chan fork),
		quit:     make(chan struct{}),
		exits:    make(chan *ExitError, 64),
	}
	for _, d := range []string{s.notesDir, s.logsDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("create directory: %w", err)
		}
	}
	if err := s.takeDir(dir); err != nil {
		return nil, err
	}
	if err := endLeftovers(s.notesDir, log); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	go s.forkAll()
	return s, nil
}

// takeDir locks dir. The kernel lets go of the lock when this process ends, however it ends.
func (s *Supervisor) takeDir(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%w: %s", ErrInUse, dir), f.Close())
	}
	s.lock = f
	return nil
}

// forkAll starts every child from one thread, which a goroutine has locked. A child dies with the
// thread that forked it, and the Go runtime ends other threads as it likes. It returns, and the
// thread ends, after Close.
func (s *Supervisor) forkAll() {
	runtime.LockOSThread()
	for {
		select {
		case f := <-s.forks:
			f.done <- f.start()
		case <-s.quit:
			return
		}
	}
}

// Start starts a process under a name that no other process of this Supervisor has.
func (s *Supervisor) Start(c Command) (*Process, error) {
	p := &Process{command: c, supervisor: s, logPath: filepath.Join(s.logsDir, c.Name+".log")}
	s.mu.Lock()
	taken := slices.ContainsFunc(s.processes, func(q *Process) bool { return q.command.Name == c.Name })
	if !taken {
		s.processes = append(s.processes, p)
	}
	s.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("start %s: a process of this name exists already", c.Name)
	}
	if err := p.Start(); err != nil {
		s.forget(p)
		return nil, err
	}
	return p, nil
}

func (s *Supervisor) forget(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = slices.DeleteFunc(s.processes, func(q *Process) bool { return q == p })
}

// Process returns the process started under name, or nil.
func (s *Supervisor) Process(name string) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.processes, func(p *Process) bool { return p.command.Name == name })
	if i < 0 {
		return nil
	}
	return s.processes[i]
}

// Exits delivers the end of each process that nobody asked to end.
func (s *Supervisor) Exits() <-chan *ExitError { return s.exits }

// Close stops all processes, the last one started first, each with SIGTERM and, when grace is over,
// SIGKILL, and gives the directory back. Afterwards no process is left. A second Close does
// nothing.
func (s *Supervisor) Close(grace time.Duration) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	processes := slices.Clone(s.processes)
	s.mu.Unlock()

	var errs []error
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.Stop(grace))
	}
	close(s.quit)
	return errors.Join(append(errs, s.lock.Close())...)
}

// run executes start on the forking thread. It excludes Close, so that no child starts behind
// Close's back.
func (s *Supervisor) run(start func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("supervisor is closed")
	}
	done := make(chan error, 1)
	s.forks <- fork{start: start, done: done}
	return <-done
}

// report tells of a process that ended by itself. A reader that does not keep up loses reports,
// never the log line.
func (s *Supervisor) report(e *ExitError) {
	s.log.Error("Process ended by itself", "process", e.Process, "state", e.State, "log", e.LogPath, "tail", e.Tail)
	select {
	case s.exits <- e:
	default:
	}
}
