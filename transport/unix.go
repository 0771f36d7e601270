package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials/insecure"
)

// MaxSocketPath bounds the path of a unix socket, in bytes, on both sides: what sun_path of every
// platform holds, less its terminating zero, and less the suffix under which a socket is made.
const MaxSocketPath = 99

// unixSocket is a driver's socket in the file system; its permissions are the access control.
type unixSocket string

func parseUnix(path string, _ Options) (Transport, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, errors.New("write the socket as unix:///absolute/path, with three slashes")
	}
	if len(path) > MaxSocketPath {
		return nil, fmt.Errorf("the socket's path has %d bytes, at most %d are possible: choose a shorter one", len(path), MaxSocketPath)
	}
	return unixSocket(path), nil
}

// Open implements Transport.
func (s unixSocket) Open(ctx context.Context) (*Wire, error) {
	conn, err := dial(ctx, net.Dialer{}, "unix", string(s))
	if err != nil {
		return nil, err
	}
	return &Wire{Conn: conn, Credentials: insecure.NewCredentials(), Authority: "localhost"}, nil
}
