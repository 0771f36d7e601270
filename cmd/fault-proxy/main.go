// Command fault-proxy stands between a driver and its cloud's HTTP API, breaks requests on request,
// and tells what was asked:
//
//	fault-proxy -control 127.0.0.1:15999 127.0.0.1:15000=https://api.example.com:443 …
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/millwright-dev/millwright/conformance/faultproxy"
)

func main() {
	control := flag.String("control", "127.0.0.1:15999", "where rules are set and calls are told, on this machine alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := faultproxy.New(slog.New(slog.NewTextHandler(os.Stderr, nil))).Serve(ctx, *control, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault-proxy:", err)
		os.Exit(1)
	}
}
