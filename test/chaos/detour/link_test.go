package detour

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// echo answers each line with itself, at the address that it returns.
func echo(t *testing.T, network, at string) string {
	t.Helper()
	listener, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// ask sends a line and returns the answer.
func ask(c net.Conn, line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

func dial(t *testing.T, l *Link) net.Conn {
	t.Helper()
	c, err := net.Dial(l.network, l.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestLinkCutsAndStalls(t *testing.T) {
	dir, err := os.MkdirTemp("", "mw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tcp, err := TCP(echo(t, "tcp", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	unix, err := Unix(filepath.Join(dir, "a"), echo(t, "unix", filepath.Join(dir, "b")))
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Link{"tcp": tcp, "unix": unix} {
		t.Run(name, func(t *testing.T) { cutAndStall(t, l) })
	}
}

func cutAndStall(t *testing.T, l *Link) {
	c := dial(t, l)
	if got, err := ask(c, "hello"); err != nil || got != "hello\n" {
		t.Fatalf("through the link: %q, %v", got, err)
	}
	l.Cut()
	if got, err := ask(c, "still there?"); err == nil {
		t.Errorf("a cut connection answers %q", got)
	}
	// Whether the connection comes about before it is broken is left to chance.
	if other, err := net.Dial(l.network, l.Address()); err == nil {
		if got, err := ask(other, "anybody?"); err == nil {
			t.Errorf("a link that is down answers %q", got)
		}
		_ = other.Close()
	}
	l.Mend()
	c = dial(t, l)
	if got, err := ask(c, "again"); err != nil || got != "again\n" {
		t.Fatalf("mended: %q, %v", got, err)
	}
	l.Stall()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(c, "late"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("while it is stalled: %q, %v", got, err)
	}
	l.Mend()
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); err != nil || got != "late\n" {
		t.Errorf("what was held back: %q, %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a closed link keeps its connections")
	}
}
