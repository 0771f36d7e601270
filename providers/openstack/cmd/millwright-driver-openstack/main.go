// Command millwright-driver-openstack is the driver of OpenStack. Credentials come with each
// request, from where its cloudProviderSpec says; where it says nothing, from the environment: the
// variables OS_* that every OpenStack client reads, or the entry of a clouds.yaml that OS_CLOUD
// names.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/millwright-dev/millwright/providers/openstack/driver"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// version is set by the linker.
var version = "dev"

// settings are what the flags say.
type settings struct {
	clouds         string
	requestTimeout time.Duration
	driver         driver.Options
	serve          sdk.Options
}

func main() {
	var level slog.Level
	s := settings{driver: driver.Options{Version: version}}
	flag.TextVar(&level, "log-level", slog.LevelInfo, "how much to log: DEBUG has every call with its messages, redacted, and each request to OpenStack")
	flag.StringVar(&s.serve.Endpoint, "endpoint", "", "where to serve, as unix:///path or tcp://host:port (default $MILLWRIGHT_ENDPOINT); nowhere else but to core where core has started it")
	flag.StringVar(&s.serve.TracingEndpoint, "tracing-endpoint", "", "collector of OpenTelemetry traces, as https://host:port or unix:///path (default $MILLWRIGHT_TRACING_ENDPOINT, else none)")
	flag.StringVar(&s.driver.Name, "name", "", "what the driver is called, so that several can serve one core (default openstack)")
	flag.StringVar(&s.clouds, "clouds", "", "clouds.yaml with the credentials of specs that name none; OS_CLOUD chooses the entry (default $OS_CLIENT_CONFIG_FILE)")
	flag.DurationVar(&s.requestTimeout, "request-timeout", 0, "how long one request to OpenStack may take (default 30s)")
	flag.DurationVar(&s.driver.CreateSettle, "create-settle", 0, "how long after a lost answer OpenStack may still make what was asked for (default 1m)")
	flag.DurationVar(&s.driver.PollInterval, "poll-interval", 0, "when core shall ask again about a server that is on its way (default 2s)")
	showVersion := flag.Bool("version", false, "print the version, and do nothing else")
	flag.Parse()
	if *showVersion {
		fmt.Println("millwright-driver-openstack", version)
		return
	}
	s.serve.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	// 90 % of the cgroup's memory, unless $GOMEMLIMIT is given. A cgroup that cannot be read is no
	// reason not to serve.
	if _, err := memlimit.Set(); err != nil {
		s.serve.Log.Info("the cgroup's memory limit cannot be read", "error", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		s.serve.Log.Error("driver ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	for name, value := range map[string]time.Duration{
		"--create-settle": s.driver.CreateSettle, "--poll-interval": s.driver.PollInterval, "--request-timeout": s.requestTimeout,
	} {
		if value < 0 {
			return fmt.Errorf("%s: is %s; give a duration above 0, or leave it out", name, value)
		}
	}
	var err error
	if s.driver.Environment, err = environment(s.clouds); err != nil {
		return err
	}
	sessions := session.NewPool(session.Options{
		RequestTimeout: s.requestTimeout, UserAgent: "millwright/" + version, Log: s.serve.Log,
	})
	return sdk.Serve(ctx, driver.New(sessions, s.driver), s.serve)
}

// environment reads the operator's credentials; there need not be any.
func environment(clouds string) (spec.Environment, error) {
	if clouds == "" {
		clouds = os.Getenv("OS_CLIENT_CONFIG_FILE")
	}
	var raw []byte
	if clouds != "" {
		var err error
		if raw, err = os.ReadFile(clouds); err != nil {
			return spec.Environment{}, fmt.Errorf("--clouds: %w", err)
		}
	}
	found, err := spec.EnvironmentFrom(os.Getenv, raw)
	if err != nil {
		return spec.Environment{}, errors.Join(errors.New("the environment's credentials"), err)
	}
	if found.CACertFile == "" {
		return found, nil
	}
	pem, err := os.ReadFile(found.CACertFile)
	if err != nil {
		return spec.Environment{}, fmt.Errorf("the environment's certificates: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return spec.Environment{}, fmt.Errorf("the environment's certificates: %s holds none in PEM", found.CACertFile)
	}
	found.Account.CACert = string(pem)
	return found, nil
}
