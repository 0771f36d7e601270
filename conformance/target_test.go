package conformance

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/transport"
)

// A driver closes a connection that has come of age: no check begins on one.
func TestAnOldConnectionIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	way, err := transport.Parse("unix://"+path, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	driver := &target{way: way}
	t.Cleanup(driver.close)
	reach := func() *transport.Conn {
		if err := driver.reach(t.Context()); err != nil {
			t.Fatal(err)
		}
		return driver.driver
	}
	first := reach()
	if reach() != first {
		t.Error("a connection that is young was replaced")
	}
	driver.since = time.Now().Add(-connectionLife)
	if reach() == first {
		t.Error("a check begins on a connection that is old")
	}
}
