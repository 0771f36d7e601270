// Command faultproxy stands before the endpoints of the cloud that test/openstack brings up, breaks
// requests on request, and tells what was asked:
//
//	faultproxy -control 127.0.0.1:15999 127.0.0.1:15000=127.0.0.1:5000 …
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/millwright-dev/millwright/test/openstack/faultproxy"
)

func main() {
	control := flag.String("control", "127.0.0.1:15999", "where rules are set and calls are told")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := faultproxy.New(slog.New(slog.NewTextHandler(os.Stderr, nil))).Serve(ctx, *control, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faultproxy:", err)
		os.Exit(1)
	}
}
