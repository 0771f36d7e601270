// Command millwright-driver-example is a driver whose cloud is a folder, and a VM a directory in
// it.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/millwright-dev/millwright/sdk"
)

func main() {
	endpoint := flag.String("endpoint", "", "where to serve, as unix:///path (default $MILLWRIGHT_ENDPOINT)")
	cloud := flag.String("cloud", "cloud", "the folder that is the cloud")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := os.OpenRoot(*cloud) // it has to be there: a disk that is not mounted must not look like a cloud without VMs
	if err == nil {
		err = sdk.Serve(ctx, &driver{cloud: root}, sdk.Options{Endpoint: *endpoint})
	}
	if err != nil {
		slog.Error("driver ended", "error", err)
		os.Exit(1)
	}
}
