package socket

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/millwright-dev/millwright/transport"
)

func endpoint(t *testing.T) (endpoint, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "d.sock")
	return "unix://" + path, path
}

// mustListen listens, and takes connections and closes them, until the test ends.
func mustListen(t *testing.T, endpoint string) net.Listener {
	t.Helper()
	listener, err := Listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func reaches(path string) bool {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func TestListenAndClose(t *testing.T) {
	endpoint, path := endpoint(t)
	listener := mustListen(t, endpoint)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("the socket's mode is %s, want srw-rw----", info.Mode())
	}
	if !reaches(path) {
		t.Error("nobody answers")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("closing has left %v, %v", left, err)
	}
	mustListen(t, endpoint)
}

// leave leaves at path a socket that nobody serves, as kill -9 does.
func leave(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func leaveNothing(t *testing.T, _ string) { t.Helper() }

func leaveAll(t *testing.T, path string) {
	t.Helper()
	leave(t, path)
	leave(t, path+suffixNew)
	leaveFile(t, path+suffixLock)
}

func leaveLink(t *testing.T, path string) {
	t.Helper()
	leave(t, path+"2")
	must(t, os.Symlink(path+"2", path))
}

func leaveFile(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
}

func leaveFolder(t *testing.T, path string) {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
}

func leaveLockFolder(t *testing.T, path string) {
	t.Helper()
	leaveFolder(t, path+suffixLock)
}

func listenLocked(t *testing.T, path string) {
	t.Helper()
	mustListen(t, "unix://"+path)
}

func TestWhatStandsAtThePath(t *testing.T) {
	cases := map[string]struct {
		arrange func(t *testing.T, path string)
		want    func(error) bool
	}{
		"nothing":                         {leaveNothing, isNil},
		"a socket that is dead":           {leave, isNil},
		"a socket, its lock and a half":   {leaveAll, isNil},
		"a socket served with this lock":  {listenLocked, isInUse},
		"a socket served without it":      {listenPlainly, isInUse},
		"a socket whose queue is full":    {listenDeafly, isInUse},
		"a link to a socket":              {leaveLink, isOther},
		"a file":                          {leaveFile, isOther},
		"a folder":                        {leaveFolder, isOther},
		"a folder in the place of a lock": {leaveLockFolder, isOther},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			endpoint, path := endpoint(t)
			tc.arrange(t, path)
			before, _ := os.Lstat(path)
			listener, err := Listen(endpoint)
			if !tc.want(err) {
				t.Fatalf("Listen = %v", err)
			}
			if err == nil {
				if !reaches(path) {
					t.Error("nobody answers")
				}
				must(t, listener.Close())
				return
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the path", err)
			}
			if after, _ := os.Lstat(path); before != nil && !os.SameFile(before, after) {
				t.Error("what was refused has been changed")
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

func isInUse(err error) bool { return errors.Is(err, ErrInUse) }

func isOther(err error) bool { return err != nil && !errors.Is(err, ErrInUse) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenPlainly is a server that knows nothing of locks.
func listenPlainly(t *testing.T, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
}

// listenDeafly is a server that is too busy to accept.
func listenDeafly(t *testing.T, path string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	must(t, syscall.Listen(fd, 0))
	for {
		conn, err := net.Dial("unix", path)
		if errors.Is(err, syscall.EAGAIN) {
			return
		}
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
}

func TestOfManyAtOnceOneWins(t *testing.T) {
	const rounds, starters = 50, 8
	endpoint, path := endpoint(t)
	for round := range rounds {
		if round%2 == 0 {
			leave(t, path)
		}
		listeners := make([]net.Listener, starters)
		var group sync.WaitGroup
		for i := range starters {
			group.Go(func() {
				listener, err := Listen(endpoint)
				if err != nil && !isInUse(err) {
					t.Errorf("Listen = %v, want ErrInUse", err)
				}
				listeners[i] = listener
			})
		}
		group.Wait()
		var won int
		for _, listener := range listeners {
			if listener == nil {
				continue
			}
			won++
			if !reaches(path) {
				t.Error("the winner is not reached")
			}
			must(t, listener.Close())
		}
		if won != 1 {
			t.Fatalf("round %d: %d have won", round, won)
		}
	}
}

func TestClosingLeavesAnothersSocketAlone(t *testing.T) {
	endpoint, path := endpoint(t)
	listener := mustListen(t, endpoint)
	must(t, os.Remove(path))
	listenPlainly(t, path)
	must(t, listener.Close())
	if !reaches(path) {
		t.Error("the socket of somebody else is gone")
	}
}

func TestClosingASocketThatIsGone(t *testing.T) {
	endpoint, path := endpoint(t)
	listener := mustListen(t, endpoint)
	must(t, os.Remove(path))
	if err := listener.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

func TestPath(t *testing.T) {
	long := "/" + strings.Repeat("x", transport.MaxSocketPath-1)
	cases := map[string]struct {
		endpoint, want, says string
	}{
		"a socket":          {"unix:///run/d.sock", "/run/d.sock", ""},
		"the longest":       {"unix://" + long, long, ""},
		"too long":          {"unix://" + long + "x", "", "shorter"},
		"too few slashes":   {"unix://run/d.sock", "", "three slashes"},
		"gRPC's short form": {"unix:/run/d.sock", "", "three slashes"},
		"a bare path":       {"/run/d.sock", "", "unix:///"},
		"TCP":               {"tcp://0.0.0.0:9443", "", "--endpoint"},
		"a host":            {"localhost:9443", "", "plaintext TCP is refused"},
		"DNS":               {"dns:///driver:9443", "", "plaintext TCP is refused"},
		"nothing":           {"", "", "unix:///"},
	}
	for name, tc := range cases {
		got, err := Path(tc.endpoint)
		if got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: Path = %q, %v; want %q, an error that says %q", name, got, err, tc.want, tc.says)
		}
	}
}
