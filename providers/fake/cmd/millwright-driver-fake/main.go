// Command millwright-driver-fake is the driver of the fake cloud: of one that runs as a process of
// its own (--cloud), or of one in this process, which ends with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/millwright-dev/millwright/providers/fake/driver"
	"github.com/millwright-dev/millwright/providers/fake/internal/reach"
	"github.com/millwright-dev/millwright/sdk"
)

// version is set by the linker.
var version = "dev"

func main() {
	var level slog.Level
	flag.TextVar(&level, "log-level", slog.LevelInfo, "how much to log: DEBUG has every call with its messages, redacted")
	endpoint := flag.String("endpoint", "", "where to serve, as unix:///path or tcp://host:port (default $MILLWRIGHT_ENDPOINT); nowhere else but to core where core has started it")
	name := flag.String("name", "", "what the driver is called, so that several can serve one core (default fake)")
	cloudEndpoint := flag.String("cloud", "", "where the cloud serves, as unix:///path; empty: a cloud in this process")
	hooks := flag.String("backend-listen", "", "where to serve the hooks of the cloud in this process, as unix:///path")
	zone := flag.String("default-zone", "", "the zone of VMs whose spec names none (default fake-1a)")
	traces := flag.String("tracing-endpoint", "", "collector of OpenTelemetry traces, as https://host:port or unix:///path (default $MILLWRIGHT_TRACING_ENDPOINT, else none)")
	undeclared := flag.Bool("undeclared-settle", false, "do not declare how late a create may land")
	showVersion := flag.Bool("version", false, "print the version, and do nothing else")
	flag.Parse()
	if *showVersion {
		fmt.Println("millwright-driver-fake", version)
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	target := reach.Target{Endpoint: *cloudEndpoint, Hooks: *hooks}
	options := sdk.Options{Endpoint: *endpoint, Log: log, TracingEndpoint: *traces}
	own := []driver.Option{driver.WithName(*name), driver.WithDefaultZone(*zone)}
	if *undeclared {
		own = append(own, driver.WithoutSettle())
	}
	if err := run(ctx, options, target, own...); err != nil {
		log.Error("driver ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, options sdk.Options, target reach.Target, own ...driver.Option) error {
	client, closeCloud, err := reach.Cloud(ctx, options.Log, target)
	if err != nil {
		return err
	}
	defer closeCloud()
	return sdk.Serve(ctx, driver.New(version, client, own...), options)
}
