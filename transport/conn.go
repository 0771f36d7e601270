package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"

	"github.com/millwright-dev/millwright/proto/contract"
)

// ErrAway is what errors wrap that say that nobody answers at an address now.
var ErrAway = errors.New("nobody answers")

// ErrPaused is an ErrAway: a driver that has ended too soon too often is not started yet. It says
// nothing of why that was: what was told of the last attempt still holds.
var ErrPaused = away(errors.New("the driver has ended too soon too often; it is started again later"))

// away marks err as one that passes by itself.
func away(err error) error { return fmt.Errorf("%w: %w", ErrAway, err) }

// Conn is one connection to a driver. It never reconnects: see Lost.
type Conn struct {
	*grpc.ClientConn
	wire  *Wire
	close sync.Once
}

// Connect opens a connection and waits until calls can be made on it, up to timeout once the driver
// is there. Each side takes messages of up to 8 MiB; nothing is retried. Errors are those of
// Transport.Open, or say what is wrong with the connection.
func Connect(ctx context.Context, t Transport, timeout time.Duration, options ...grpc.DialOption) (*Conn, error) {
	wire, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := speak(ctx, wire, options)
	if err != nil {
		wire.Close()
		return nil, err
	}
	return &Conn{ClientConn: conn, wire: wire}, nil
}

// Lost returns when the connection is lost, or ctx ends.
func (c *Conn) Lost(ctx context.Context) { c.WaitForStateChange(ctx, connectivity.Ready) }

// Process is the driver's, where it was started for this connection; else nil. It may have ended.
func (c *Conn) Process() *os.Process { return c.wire.Process }

// Close ends the connection, and a driver that was started for it: it returns when that has ended.
// Let the calls under way end first. It may be called more than once.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		err = c.ClientConn.Close()
		c.wire.Close()
	})
	return err
}

// speak makes a gRPC connection of a wire, which cannot dial again.
func speak(ctx context.Context, wire *Wire, options []grpc.DialOption) (*grpc.ClientConn, error) {
	secured, info, err := wire.Credentials.ClientHandshake(ctx, wire.Authority, wire.Conn)
	if err != nil {
		if _, ofNetwork := errors.AsType[*net.OpError](err); ofNetwork || errors.Is(err, io.EOF) {
			return nil, &refusal{cause: err}
		}
		return nil, fmt.Errorf("the connection cannot be secured: %w", err)
	}
	heard := &hearing{Conn: secured}
	once := make(chan net.Conn, 1)
	once <- wire.Conn
	conn, err := grpc.NewClient("passthrough:///driver", append([]grpc.DialOption{
		grpc.WithTransportCredentials(shaken{wire.Credentials, heard, info}),
		grpc.WithAuthority(wire.Authority),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case conn := <-once:
				return conn, nil
			default:
				return nil, net.ErrClosed
			}
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(contract.MaxMessageBytes),
		),
	}, options...)...)
	if err != nil {
		return nil, err
	}
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, state) {
			_ = conn.Close() // nobody has used it
			return nil, &refusal{cause: heard.ended()}
		}
	}
	return conn, nil
}

// shaken are credentials whose handshake is over: its errors reach whoever connects, and not only
// gRPC's log.
type shaken struct {
	credentials.TransportCredentials
	conn net.Conn
	info credentials.AuthInfo
}

// ClientHandshake returns what the handshake has made.
func (s shaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return s.conn, s.info, nil
}

// Clone implements credentials.TransportCredentials.
func (s shaken) Clone() credentials.TransportCredentials { return s }

// hearing is a connection that remembers how reading from it ended: with TLS 1.3 a peer that
// refuses a certificate says so only after the handshake.
type hearing struct {
	net.Conn
	mu  sync.Mutex
	end error
}

// Read implements net.Conn.
func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.end == nil {
			h.end = err
		}
	}
	return n, err
}

// ended says how reading from it ended; nil while it has not.
func (h *hearing) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end
}

// refusal says that a driver is there and does not talk. What it says of that, if anything, may be
// lost with the connection and differs between attempts: it is the cause, for the log.
type refusal struct{ cause error }

// Error is the same for each attempt.
func (*refusal) Error() string {
	return "the driver takes connections but does not speak gRPC on them, or does not trust this side's certificate"
}

// Unwrap returns nil where nothing was heard.
func (r *refusal) Unwrap() error { return r.cause }
