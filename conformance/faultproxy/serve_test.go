package faultproxy_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/millwright-dev/millwright/conformance/faultproxy"
)

func TestServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, tc := range map[string]struct {
		control string
		relays  []string
		fails   bool
	}{
		"ends with its context": {control: "127.0.0.1:0", relays: []string{"127.0.0.1:0=127.0.0.1:1"}},
		"no target":             {control: "127.0.0.1:0", relays: []string{"127.0.0.1:0"}, fails: true},
		"no port":               {control: "127.0.0.1:0", relays: []string{"localhost=127.0.0.1:1"}, fails: true},
		"one address twice":     {control: "127.0.0.1:0", relays: []string{"127.0.0.1:15000=127.0.0.1:1", "127.0.0.1:15000=127.0.0.1:2"}, fails: true},
		"that of control":       {control: "127.0.0.1:15999", relays: []string{"127.0.0.1:15999=127.0.0.1:1"}, fails: true},
		"a port that is taken":  {control: taken.Addr().String(), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			err := faultproxy.New(slog.New(slog.DiscardHandler)).Serve(ctx, tc.control, tc.relays)
			if (err != nil) != tc.fails {
				t.Errorf("served: %v, want an error: %t", err, tc.fails)
			}
		})
	}
}
