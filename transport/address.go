package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
)

// Transport reaches one driver. A driver may be away at any time: Open fails then, and can be
// called again. One connection is open at a time.
type Transport interface {
	// Open opens one connection. An error that wraps ErrAway says that nobody is there now, which
	// passes by itself. Any other names what a person has to mend, in words that stay the same
	// while the cause lasts.
	Open(ctx context.Context) (*Wire, error)
}

// Wire is an open connection, not yet secured.
type Wire struct {
	// Conn is the connection. Closing it is not enough: see Close.
	Conn net.Conn
	// Credentials secure it.
	Credentials credentials.TransportCredentials
	// Authority is the host of requests.
	Authority string
	// Process is what Open has started for this connection; nil for nothing.
	Process *os.Process
	// release ends it.
	release func()
}

// Close closes the connection and ends what Open has started for it: it may take as long as a
// driver may to end. It may be called more than once.
func (w *Wire) Close() {
	// Whatever closing it says, nothing uses the connection any more.
	_ = w.Conn.Close()
	if w.release != nil {
		w.release()
		w.release = nil
	}
}

// dialTimeout is how long it may take until somebody takes a connection.
const dialTimeout = 5 * time.Second

// dial connects to an address.
func dial(ctx context.Context, d net.Dialer, network, address string) (net.Conn, error) {
	d.Timeout = dialTimeout
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, away(err)
	}
	return conn, nil
}

// Options are what the addresses of a process have in common. The zero value is good.
type Options struct {
	// Log gets what a driver that was started writes, and how it ends; nil means slog.Default().
	Log *slog.Logger
	// Clean takes out of what a driver that was started writes what nobody may read; nil: nothing.
	// It must be safe for use by several goroutines.
	Clean func(text string) string
	// Eager starts a driver again at once however soon it has ended: for those who end it on
	// purpose.
	Eager bool
}

// schemes are what an address can begin with.
var schemes = map[string]func(rest string, o Options) (Transport, error){
	"unix": parseUnix,
	"dns":  parseTCP,
	"exec": parseExec,
}

// Parse returns the transport of an address; an error says what to write instead. It reaches nobody
// yet.
func Parse(address string, o Options) (Transport, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	scheme, rest, found := strings.Cut(address, "://")
	if parse := schemes[scheme]; found && parse != nil {
		t, err := parse(rest, o)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", address, err)
		}
		return t, nil
	}
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "/") {
		return nil, fmt.Errorf("address %q: write the socket as unix:///absolute/path", address)
	}
	return nil, fmt.Errorf("address %q: write unix:///absolute/path for a socket, exec:///absolute/path for a driver that is to be started, "+
		"or dns:///host:port?tls=/folder for TCP; plaintext TCP is refused because requests hold credentials", address)
}
