package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// starterDir, when set, makes the test binary a starter: it starts one child and waits to be
// killed.
const starterDir = "SUPERVISOR_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterDir); dir != "" {
		s, err := New(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			panic(err)
		}
		p, err := s.Start(Command{Name: "child", Path: "/bin/sleep", Args: []string{"600"}})
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(p.Pid()) + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func newSupervisor(t *testing.T, dir string) *Supervisor {
	t.Helper()
	s, err := New(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(time.Second); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t *testing.T, s *Supervisor, name, script string) *Process {
	t.Helper()
	p, err := s.Start(Command{Name: name, Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("not within 20 s: %s", what)
	}
}

// goneSoon waits for the end of a process that is not this process's child.
func goneSoon(t *testing.T, pid int) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-ticker.C {
		if _, err := identify(pid); err != nil {
			return
		}
	}
	t.Fatalf("process %d is still there", pid)
}

func TestKilledStarterLeavesNothing(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	for range 5 { // The death signal hangs on a thread: once may be luck.
		starter := exec.Command(os.Args[0])
		starter.Env = append(os.Environ(), starterDir+"="+dir, "TMPDIR="+temp)
		out, err := starter.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := starter.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		child, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := identify(child); err != nil {
			t.Fatalf("the child does not run: %v", err)
		}
		if err := starter.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = starter.Wait() // It was killed, and says so.
		goneSoon(t, child)
		if n := len(entries(t, temp)); n != 1 {
			t.Errorf("%d folders of temporary files are there: the next starter removes that of the one before", n)
		}
	}
	newSupervisor(t, dir)
	if left := entries(t, temp); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
}

// entries returns the names in a folder.
func entries(t *testing.T, folder string) []string {
	t.Helper()
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range all {
		names = append(names, entry.Name())
	}
	return names
}

func TestTemporaryFilesOfAKilledProcessGo(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	p := start(t, newSupervisor(t, t.TempDir()), "child", `touch "$TMPDIR/file"; echo up; exec sleep 600`)
	waitForLog(t, p, "up")
	if own := entries(t, temp); len(own) != 1 || len(entries(t, filepath.Join(temp, own[0]))) != 1 {
		t.Errorf("the child has no folder of its own: %v", own)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if left := entries(t, temp); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
}

func TestLeftoversEndOnlyWhenProven(t *testing.T) {
	cases := map[string]struct {
		change func(*note)
		killed bool
	}{
		"the noted process":                   {change: func(*note) {}, killed: true},
		"another start: the pid came again":   {change: func(n *note) { n.Identity.StartTicks = "1" }},
		"another boot: the pid came again":    {change: func(n *note) { n.Identity.Boot = "x" }},
		"another executable behind the pid":   {change: func(n *note) { n.Identity.Executable = "/bin/true" }},
		"a pid that can never be a leftover":  {change: func(n *note) { n.Pid = 1 }},
		"a note without any proof of its own": {change: func(n *note) { n.Identity = identity{} }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			stranger := exec.Command("/bin/sleep", "600")
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() { _ = stranger.Wait(); close(gone) }()
			t.Cleanup(func() { _ = stranger.Process.Kill(); <-gone })
			id, err := identify(stranger.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			n := note{Name: "x", Pid: stranger.Process.Pid, Identity: id}
			c.change(&n)
			data, err := json.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "run", "x.json")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			newSupervisor(t, dir)
			if c.killed {
				within(t, "the leftover ends", gone)
			}
			if !c.killed {
				if _, err := identify(stranger.Process.Pid); err != nil {
					t.Errorf("a process that is not proven ours was killed: %v", err)
				}
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the note is still there: %v", err)
			}
		})
	}
}

func TestDirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	first := newSupervisor(t, dir)
	p := start(t, first, "child", "exec sleep 600")
	if _, err := New(dir, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrInUse) {
		t.Fatalf("second owner: got %v, want ErrInUse", err)
	}
	if p.Pid() == 0 {
		t.Error("the second owner killed the first one's child")
	}
	if err := first.Close(time.Second); err != nil {
		t.Fatal(err)
	}
	newSupervisor(t, dir)
}

func TestEndByItselfIsReported(t *testing.T) {
	s := newSupervisor(t, t.TempDir())
	p := start(t, s, "child", "seq 1 100; echo the reason >&2; exit 3")
	within(t, "the child ends", p.Done())
	got := <-s.Exits()
	if got.Process != "child" || got.State != "exit status 3" {
		t.Errorf("got %q, %q", got.Process, got.State)
	}
	if !strings.HasSuffix(got.Tail, "99\n100\nthe reason") || strings.Contains(got.Tail, "88\n") {
		t.Errorf("the tail is not the last lines: %q", got.Tail)
	}
	if p.Pid() != 0 {
		t.Error("a pid of a process that has ended")
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal after the end: %v", err)
	}
}

func TestAskedForEndIsNotReported(t *testing.T) {
	s := newSupervisor(t, t.TempDir())
	for _, p := range []*Process{start(t, s, "killed", "exec sleep 600"), start(t, s, "stubborn", `trap "" TERM; echo up; while :; do sleep 0.01; done`)} {
		if err := p.Stop(50 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if p.Pid() != 0 {
			t.Errorf("%s still runs", p.Name())
		}
	}
	select {
	case e := <-s.Exits():
		t.Errorf("reported: %v", e)
	default:
	}
}

func TestEndedProcessCanBeStartedAgain(t *testing.T) {
	s := newSupervisor(t, t.TempDir())
	p := start(t, s, "child", "echo run; exec sleep 600")
	first := p.Pid()
	if err := p.Start(); err != nil || p.Pid() != first {
		t.Errorf("starting what runs: pid %d became %d, %v", first, p.Pid(), err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if p.Pid() == 0 || p.Pid() == first {
		t.Errorf("pid after another start: %d, first %d", p.Pid(), first)
	}
	if s.Process("child") != p || s.Process("nobody") != nil {
		t.Error("Process does not find by name")
	}
	if _, err := s.Start(Command{Name: "child", Path: "/bin/true"}); err == nil {
		t.Error("two processes of one name")
	}
}

func TestCloseEndsAllLastFirst(t *testing.T) {
	dir := t.TempDir()
	s := newSupervisor(t, dir)
	trap := `trap 'echo "$0" >> ` + dir + `/order; exit' TERM; echo up; while :; do sleep 0.01; done`
	var pids []int
	for _, name := range []string{"a", "b", "c"} {
		p, err := s.Start(Command{Name: name, Path: "/bin/sh", Args: []string{"-c", trap, name}})
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, p.Pid())
		waitForLog(t, p, "up")
	}
	if err := s.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if _, err := identify(pid); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
	order, err := os.ReadFile(filepath.Join(dir, "order"))
	if err != nil || string(order) != "c\nb\na\n" {
		t.Errorf("order of ends: %q, %v", order, err)
	}
	if _, err := s.Start(Command{Name: "d", Path: "/bin/true"}); err == nil {
		t.Error("started a process after Close")
	}
	notes, err := filepath.Glob(filepath.Join(dir, "run", "*"))
	if err != nil || len(notes) != 0 {
		t.Errorf("notes are left: %v, %v", notes, err)
	}
}

func waitForLog(t *testing.T, p *Process, want string) {
	t.Helper()
	f, err := os.Open(p.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var seen strings.Builder
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-ticker.C {
		if _, err := io.Copy(&seen, f); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(seen.String(), want) {
			return
		}
	}
	t.Fatalf("%s never said %q", p.Name(), want)
}
