package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// maxUnixPath is what sun_path of every platform holds, less its terminating zero.
const maxUnixPath = 103

// transport reaches a driver. A driver may be away at any time: dial fails then and is tried again.
type transport interface {
	// dial opens one connection, or fails.
	dial(ctx context.Context) (net.Conn, error)
	// credentials secure a connection that dial opened.
	credentials() credentials.TransportCredentials
}

// transportFor returns the transport of an address; an error says what to write instead.
func transportFor(address string) (transport, error) {
	scheme, rest, found := strings.Cut(address, "://")
	if found && scheme == "unix" {
		return unixTransport(rest)
	}
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "/") {
		return nil, fmt.Errorf("address %q: write the socket as unix:///absolute/path", address)
	}
	return nil, fmt.Errorf("address %q: only unix:///absolute/path is served; plaintext TCP is refused because "+
		"requests hold credentials: run the driver beside core and share its socket", address)
}

func unixTransport(path string) (transport, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, errors.New("write the socket as unix:///absolute/path, with three slashes")
	}
	if len(path) > maxUnixPath {
		return nil, fmt.Errorf("the socket's path has %d bytes, at most %d are possible: choose a shorter one", len(path), maxUnixPath)
	}
	return unixSocket(path), nil
}

// unixSocket is a driver's socket in the file system; its permissions are the access control.
type unixSocket string

func (s unixSocket) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", string(s))
}

func (s unixSocket) credentials() credentials.TransportCredentials {
	return insecure.NewCredentials()
}
