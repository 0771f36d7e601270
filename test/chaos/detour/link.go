package detour

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// Link passes on what arrives at its address, both ways. It is safe for concurrent use.
type Link struct {
	listener net.Listener
	network  string
	to       string

	mu    sync.Mutex
	flows map[*flow]struct{}
	// down: nobody is let in. stalled is closed when what was stalled goes on; nil while nothing
	// is.
	down    bool
	stalled chan struct{}
}

// flow is a connection and the one that it is passed on by.
type flow struct{ from, to net.Conn }

// TCP returns a Link to host:port, at a free port of this machine.
func TCP(to string) (*Link, error) { return open("tcp", "127.0.0.1:0", to) }

// Unix returns a Link from one socket's path to another's.
func Unix(at, to string) (*Link, error) {
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}
	return open("unix", at, to)
}

func open(network, at, to string) (*Link, error) {
	listener, err := net.Listen(network, at)
	if err != nil {
		return nil, fmt.Errorf("open a link to %s: %w", to, err)
	}
	l := &Link{listener: listener, network: network, to: to, flows: map[*flow]struct{}{}}
	go l.accept()
	return l, nil
}

// Address is where it can be reached: host:port, or a path.
func (l *Link) Address() string { return l.listener.Addr().String() }

func (l *Link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.pass(from)
	}
}

// pass passes on one connection, to its end.
func (l *Link) pass(from net.Conn) {
	to, err := net.Dial(l.network, l.to)
	if err != nil {
		_ = from.Close()
		return
	}
	f := &flow{from: from, to: to}
	if !l.enter(f) {
		f.end()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.copy(to, from); f.end() })
	both.Go(func() { l.copy(from, to); f.end() })
	both.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flows, f)
}

func (l *Link) enter(f *flow) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	l.flows[f] = struct{}{}
	return true
}

// copy passes on bytes as they come, unless they are stalled.
func (l *Link) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		stalled := l.stalled
		l.mu.Unlock()
		if stalled != nil {
			<-stalled
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// end breaks the connection: a reset, not a goodbye.
func (f *flow) end() {
	for _, c := range []net.Conn{f.from, f.to} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// Cut breaks all connections, and lets nobody in before Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for f := range l.flows {
		f.end()
	}
}

// Stall holds back all that is sent from now on, until Mend. Connections stay.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stalled == nil {
		l.stalled = make(chan struct{})
	}
}

// Mend ends Cut and Stall: what was held back arrives.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
	if l.stalled != nil {
		close(l.stalled)
		l.stalled = nil
	}
}

// Close ends it and its connections.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.Cut()
	l.Mend()
	return err
}
