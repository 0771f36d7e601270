// Command millwright-driver-openstack is the driver of OpenStack. Credentials come with each
// request, from where its cloudProviderSpec says; where it says nothing, from the environment: the
// variables OS_* that every OpenStack client reads, or the entry of a clouds.yaml that OS_CLOUD
// names.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/millwright-dev/millwright/providers/openstack/driver"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// version is set by the linker.
var version = "dev"

// settings are what the flags say.
type settings struct {
	clouds string
	// metrics is the loopback address that serves metrics; empty serves none.
	metrics string
	// allowUnverified lets a clouds.yaml say verify: false.
	allowUnverified bool
	requestTimeout  time.Duration
	driver          driver.Options
	serve           sdk.Options
}

func main() {
	var level slog.Level
	s := settings{driver: driver.Options{Version: version}}
	flag.TextVar(&level, "log-level", slog.LevelInfo, "how much to log: DEBUG has every call with its messages, redacted, and each request to OpenStack")
	flag.StringVar(&s.serve.Endpoint, "endpoint", "", "where to serve, as unix:///path or tcp://host:port (default $MILLWRIGHT_ENDPOINT); nowhere else but to core where core has started it")
	flag.StringVar(&s.serve.TracingEndpoint, "tracing-endpoint", "", "collector of OpenTelemetry traces, as https://host:port or unix:///path (default $MILLWRIGHT_TRACING_ENDPOINT, else none)")
	flag.StringVar(&s.driver.Name, "name", "", "what the driver is called, so that several can serve one core (default openstack)")
	flag.StringVar(&s.clouds, "clouds", "", "clouds.yaml with the credentials of specs that name none; OS_CLOUD chooses the entry (default $OS_CLIENT_CONFIG_FILE)")
	flag.BoolVar(&s.allowUnverified, "insecure-allow-unverified-clouds", false, "obey verify: false of a clouds.yaml, also of one in a Secret: anybody in between can then read credentials and user data")
	flag.StringVar(&s.metrics, "metrics-bind-address", "", "loopback address that serves metrics of the calls and of the requests to OpenStack, such as 127.0.0.1:9105 (default none)")
	flag.DurationVar(&s.requestTimeout, "request-timeout", 0, "how long one request to OpenStack may take (default 30s)")
	flag.DurationVar(&s.driver.CreateSettle, "create-settle", 0, "how long after a lost answer OpenStack may still make what was asked for (default 1m)")
	flag.DurationVar(&s.driver.PollInterval, "poll-interval", 0, "when core shall ask again about a server that is on its way (default 2s)")
	flag.BoolVar(&s.driver.Regional, "regional-provider-ids", false, "write openstack://REGION/ID as providerID before a Node says otherwise, as a cloud controller manager with OS_CCM_REGIONAL=true does (default openstack:///ID)")
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
	if s.driver.Environment, err = environment(s.clouds, s.allowUnverified); err != nil {
		return err
	}
	if s.allowUnverified {
		s.serve.Log.Warn("--insecure-allow-unverified-clouds: who is between the driver and a cloud whose entry says verify: false can read credentials and user data")
	}
	options := session.Options{RequestTimeout: s.requestTimeout, UserAgent: "millwright/" + version, Log: s.serve.Log}
	if s.metrics == "" {
		return sdk.Serve(ctx, driver.New(session.NewPool(options), s.driver), s.serve)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	requests := newCloudMetrics(registry)
	options.Observe, options.ObserveWait, s.serve.Metrics = requests.observe, requests.observeWait, registry
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return serveMetrics(ctx, s.metrics, registry) })
	both.Go(func() error { return sdk.Serve(ctx, driver.New(session.NewPool(options), s.driver), s.serve) })
	return both.Wait()
}

// environment reads the operator's credentials; there need not be any. secure.yaml and
// clouds-public.yaml are read from beside clouds.yaml.
func environment(clouds string, allowUnverified bool) (spec.Environment, error) {
	if clouds == "" {
		clouds = os.Getenv("OS_CLIENT_CONFIG_FILE")
	}
	from := spec.Sources{Getenv: os.Getenv, AllowUnverified: allowUnverified}
	if clouds != "" {
		var err error
		if from.Clouds, err = os.ReadFile(clouds); err != nil {
			return spec.Environment{}, fmt.Errorf("--clouds: %w", err)
		}
		for name, into := range map[string]*[]byte{"secure.yaml": &from.Secure, "clouds-public.yaml": &from.Public} {
			*into, err = os.ReadFile(filepath.Join(filepath.Dir(clouds), name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return spec.Environment{}, fmt.Errorf("--clouds: %w", err)
			}
		}
	}
	found, err := spec.EnvironmentFrom(from)
	if err != nil {
		return spec.Environment{}, errors.Join(errors.New("the environment's credentials"), err)
	}
	if err := readCertificates(&found); err != nil {
		return spec.Environment{}, err
	}
	return found, nil
}

// readCertificates puts the contents of the files that the environment names into its account.
func readCertificates(found *spec.Environment) error {
	for _, file := range []struct {
		name string
		into *string
	}{
		{found.CACertFile, &found.Account.CACert}, {found.ClientCertFile, &found.Account.ClientCert}, {found.ClientKeyFile, &found.Account.ClientKey},
	} {
		if file.name == "" {
			continue
		}
		pem, err := os.ReadFile(file.name)
		if err != nil {
			return fmt.Errorf("the environment's certificates: %w", err)
		}
		*file.into = string(pem)
	}
	if found.CACertFile != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(found.Account.CACert)) {
		return fmt.Errorf("the environment's certificates: %s holds none in PEM", found.CACertFile)
	}
	if found.Account.ClientCert == "" && found.Account.ClientKey == "" {
		return nil
	}
	if _, err := tls.X509KeyPair([]byte(found.Account.ClientCert), []byte(found.Account.ClientKey)); err != nil {
		return fmt.Errorf("the environment's client certificate (cert and key, or OS_CERT and OS_KEY): %w", err)
	}
	return nil
}
