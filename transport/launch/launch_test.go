//go:build linux

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
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
)

// TestMain plays the driver, and who starts it, where a test has started this program as one of
// them.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(Handshake.MagicCookieKey) == Handshake.MagicCookieValue:
		driver(os.Args[1:])
	case len(os.Args) > 1 && os.Args[1] == "parent":
		parent()
	default:
		os.Exit(m.Run())
	}
}

// driver serves, after what its arguments say.
func driver(args []string) {
	for _, arg := range args {
		switch arg {
		case "fail":
			fmt.Fprintln(os.Stderr, "there is no cloud")
			os.Exit(3)
		case "child":
			child := exec.Command("/bin/sleep", "1000")
			child.Stderr = os.Stderr
			if err := child.Start(); err != nil {
				panic(err)
			}
			fmt.Fprintln(os.Stderr, "child", child.Process.Pid)
		case "environment":
			fmt.Fprintln(os.Stderr, "environment", strings.Join(os.Environ(), " "))
		case "json":
			fmt.Fprintln(os.Stderr, `{"level":"WARN","msg":"careful","token":"s3cr3t"}`)
		}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake, Plugins: Plugins(), GRPCServer: plugin.DefaultGRPCServer,
		Logger: hclog.NewNullLogger(),
	})
}

// parent starts a driver with a child, says so, and waits to be killed.
func parent() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	p, err := Start(context.Background(), self("child"), Log{Logger: log})
	if err != nil {
		panic(err)
	}
	fmt.Println("started", p.group.Load().ID())
	select {}
}

func self(args ...string) Command {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Command{Path: path, Args: args}
}

// lines are a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *lines) log() Log {
	return Log{
		Logger: slog.New(slog.NewTextHandler(l, nil)),
		Clean:  func(text string) string { return strings.ReplaceAll(text, "s3cr3t", "[redacted]") },
	}
}

func start(t *testing.T, c Command, l *lines) *Process {
	t.Helper()
	p, err := Start(t.Context(), c, l.log())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// eventually waits for what comes by itself.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func lives(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(raw, []byte(") Z "))
}

// pidAfter reads the number after a word of the log.
func pidAfter(t *testing.T, l fmt.Stringer, word string) int {
	t.Helper()
	var pid int
	eventually(t, word, func() bool {
		_, after, found := strings.Cut(l.String(), word+" ")
		if !found {
			return false
		}
		var err error
		pid, err = strconv.Atoi(strings.FieldsFunc(after, func(r rune) bool { return r < '0' || r > '9' })[0])
		return err == nil
	})
	return pid
}

func TestADriverServesAndIsStopped(t *testing.T) {
	l := &lines{}
	p := start(t, self("json"), l)
	if p.Address.Network() != "unix" || p.TLS == nil {
		t.Errorf("serves on %v, TLS %v", p.Address, p.TLS)
	}
	eventually(t, "the line at its level", func() bool {
		return strings.Contains(l.String(), "level=WARN") && strings.Contains(l.String(), "careful")
	})
	if strings.Contains(l.String(), "s3cr3t") {
		t.Errorf("a secret that the driver wrote is logged: %s", l)
	}
	pid := pidOf(t, p)
	p.Stop()
	p.Stop()
	if lives(pid) {
		t.Error("the process lives after Stop")
	}
	if strings.Contains(l.String(), "ended by itself") {
		t.Errorf("a driver that was stopped has ended by itself: %s", l)
	}
	if _, err := os.Stat(filepath.Dir(p.Address.String())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's folder is left: %v", err)
	}
}

func pidOf(t *testing.T, p *Process) int {
	t.Helper()
	pid, err := strconv.Atoi(p.group.Load().ID())
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestWhatADriverStartedGoesWithIt(t *testing.T) {
	for name, end := range map[string]func(*Process, int){
		"stopped": func(p *Process, _ int) { p.Stop() },
		"killed":  func(_ *Process, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			l := &lines{}
			p := start(t, self("child"), l)
			child := pidAfter(t, l, "child")
			end(p, pidOf(t, p))
			eventually(t, "the child ends", func() bool { return !lives(child) })
			p.Stop()
		})
	}
}

// TestNoDriverOutlivesAKilledParent: the kernel ends the driver and what it has started.
func TestNoDriverOutlivesAKilledParent(t *testing.T) {
	c := self()
	command := exec.CommandContext(t.Context(), c.Path, "parent")
	// The parent has no time to remove its socket. The folder's path has to be short.
	temp, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	command.Env = append(os.Environ(), "TMPDIR="+temp)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	said := &lines{}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.Copy(said, out)
	}()
	driver, child := pidAfter(t, said, "started"), pidAfter(t, said, "child")
	t.Cleanup(func() { _ = syscall.Kill(-driver, syscall.SIGKILL) })
	if !lives(driver) || !lives(child) {
		t.Fatalf("driver %d lives: %t; its child %d: %t", driver, lives(driver), child, lives(child))
	}
	killed := time.Now()
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the driver and its child end", func() bool { return !lives(driver) && !lives(child) })
	t.Logf("no process of the driver %s after its parent was killed", time.Since(killed).Round(time.Millisecond))
	<-written
	_ = command.Wait()
}

func TestADriverHasItsOwnEnvironmentOnly(t *testing.T) {
	t.Setenv("KUBECONFIG", "/secret")
	l := &lines{}
	c := self("environment")
	c.Env = []string{"GIVEN=yes"}
	start(t, c, l)
	eventually(t, "its environment", func() bool { return strings.Contains(l.String(), "environment") })
	if said := l.String(); strings.Contains(said, "KUBECONFIG") || !strings.Contains(said, "GIVEN=yes") {
		t.Errorf("the environment is %s", said)
	}
}

func TestWhatKeepsADriverFromServing(t *testing.T) {
	folder, err := os.MkdirTemp("", "mw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("TMPDIR", folder)
	c := self()
	raw, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	right, wrong := c, c
	right.SHA256, wrong.SHA256 = sum[:], make([]byte, sha256.Size)
	start(t, right, &lines{}).Stop()
	for name, test := range map[string]struct {
		command Command
		says    string
		ended   bool
	}{
		"another executable":      {wrong, "another executable", false},
		"none":                    {Command{Path: "/nowhere/driver"}, "no such file", false},
		"it fails":                {self("fail"), "there is no cloud", true},
		"it is something else":    {Command{Path: "/bin/sh", Args: []string{"-c", "echo hello; /bin/sleep 1000"}}, "does not serve", false},
		"it ends without a word":  {Command{Path: "/bin/true"}, "exit status 0", true},
		"nobody may run the file": {Command{Path: "/etc/passwd"}, "permission denied", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(t.Context(), test.command, (&lines{}).log())
			if err == nil {
				p.Stop()
				t.Fatal("it serves")
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), test.command.Path) {
				t.Errorf("error %q, want one that says %q", err, test.says)
			}
			if errors.Is(err, ErrEnded) != test.ended {
				t.Errorf("error %q: ended %t", err, !test.ended)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v behind (%v)", left, err)
			}
		})
	}
}

func TestWithoutATemporaryFolderTMPDIRIsNamed(t *testing.T) {
	t.Setenv("TMPDIR", "/proc/1")
	_, first := Start(t.Context(), self(), (&lines{}).log())
	_, again := Start(t.Context(), self(), (&lines{}).log())
	if first == nil || !strings.Contains(first.Error(), "set TMPDIR") || again == nil || again.Error() != first.Error() {
		t.Errorf("errors %v and %v", first, again)
	}
}

func TestHowADriverEndedIsLogged(t *testing.T) {
	l := &lines{}
	p := start(t, self(), l)
	if err := p.Process().Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "how it ended", func() bool { return strings.Contains(l.String(), "signal: killed") })
}

func TestAStartThatIsNotWantedAnyMoreEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Start(ctx, Command{Path: "/bin/sleep", Args: []string{"1000"}}, (&lines{}).log()); err == nil {
		t.Error("sleep serves")
	}
	if took := time.Since(began); took > startTimeout/2 {
		t.Errorf("it took %s to give up", took)
	}
}
