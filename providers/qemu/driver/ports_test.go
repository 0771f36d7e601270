package driver_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// forwarded is a small VM with a port of the host.
func forwarded(port int) string {
	return fmt.Sprintf(`{"image": "empty.raw", "memory": "64Mi", "cpus": 1, "forwardedPorts": [{"hostPort": %d, "guestPort": 22}]}`, port)
}

// listen takes a port of the loopback until the test ends.
func listen(t *testing.T) int {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}

// freePort is one that nobody had a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
