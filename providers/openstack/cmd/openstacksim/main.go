// Command openstacksim runs an OpenStack cloud in memory for tests, demos and benchmarks, with
// hooks by which it can be watched and made to misbehave. With --upstream it stands before real
// services instead. See package openstacksim. When it serves it says where, as one line of JSON on
// its standard output:
//
//	{"identityEndpoint": "http://127.0.0.1:35357/v3"}
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// grace bounds how long calls may take to finish once the cloud is told to end.
const grace = 3 * time.Second

// headerTimeout bounds how long a client may take to send the headers of a request.
const headerTimeout = 10 * time.Second

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, os.Args[1:]); err != nil {
		log.Error("openstacksim ended", "error", err)
		os.Exit(1)
	}
}

// places are where the cloud serves, and what else of its flags is none of its options.
type places struct {
	api, hooks, config, upstream string
	// alone says that nothing exists but what config names.
	alone     bool
	cert, key string
}

func run(ctx context.Context, log *slog.Logger, args []string) error {
	options := openstacksim.Options{Log: log, Quota: map[string]int64{}}
	var at places
	flags := flag.NewFlagSet("openstacksim", flag.ExitOnError)
	flags.StringVar(&at.api, "listen", "127.0.0.1:0", "where to serve the APIs of OpenStack, as host:port")
	flags.StringVar(&at.hooks, "backend-listen", "", "where to serve the hooks, as unix:///path; empty: nowhere")
	flags.StringVar(&at.config, "config", "", "a file in JSON with what exists besides what does by default")
	flags.BoolVar(&at.alone, "config-only", false, "have nothing exist but what --config names")
	flags.StringVar(&at.upstream, "upstream", "",
		"a file in JSON with identityEndpoint, region, administrator, member and password of real services to stand before; empty: be a cloud in memory")
	flags.StringVar(&at.cert, "tls-cert", "", "the certificate to serve with; empty: no TLS")
	flags.StringVar(&at.key, "tls-key", "", "its key")
	flags.StringVar(&options.Journal, "state", "", "the file that keeps the cloud's state; empty: memory only")
	flags.DurationVar(&options.BootLatency, "boot-latency", 0, "how long a server takes to boot")
	flags.DurationVar(&options.BindLatency, "bind-latency", 0, "how long after a server was asked for its ports know of it")
	flags.DurationVar(&options.DeleteLatency, "delete-latency", 0, "how long a server takes to go")
	flags.DurationVar(&options.VolumeLatency, "volume-latency", 0, "how long a volume takes to be made")
	flags.DurationVar(&options.TokenLifetime, "token-lifetime", 0, "how long a token is good; 0: an hour")
	flags.IntVar(&options.HostsPerZone, "hosts-per-zone", 1, "how many hosts each zone has, for server groups whose servers must not share one")
	flags.IntVar(&options.MaxComputeAPIVersion, "max-compute-api-version", 0, "the highest microversion of Nova, such as 65 for 2.65, as older releases have one; 0: that of Zed")
	flags.BoolVar(&options.WithoutCinder, "without-cinder", false, "leave block storage out")
	flags.BoolVar(&options.LaxPortPolicy, "lax-port-policy", false, "let everybody choose MAC and IP addresses in networks of other projects")
	flags.Func("regional-ids", "a region whose Nodes have providerIDs that name it, as with OS_CCM_REGIONAL=true; may be repeated", func(s string) error {
		options.RegionalIDs = append(options.RegionalIDs, s)
		return nil
	})
	flags.Func("call-latency", "how long a call takes, as 1s or 0.2s-2s", func(s string) (err error) {
		options.MinCallLatency, options.MaxCallLatency, err = parseRange(s)
		return err
	})
	flags.Func("quota", "the most of a kind in a project, as vm=3; may be repeated", func(s string) error {
		kind, limit, _ := strings.Cut(s, "=")
		n, err := strconv.ParseInt(limit, 10, 64)
		options.Quota[kind] = n
		return err
	})
	_ = flags.Parse(args) // ends the process on error
	return serve(ctx, at, options)
}

func serve(ctx context.Context, at places, options openstacksim.Options) error {
	var err error
	if options.World, err = readWorld(at); err != nil {
		return err
	}
	if at.upstream != "" {
		options.Upstream, err = openstacksim.ReadUpstream(at.upstream)
	}
	if err != nil {
		return err
	}
	var hooks net.Listener
	if at.hooks != "" {
		// The socket's lock also guards the state: it comes first.
		if hooks, err = socket.Listen(at.hooks); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", at.api)
	if err != nil {
		return errors.Join(fmt.Errorf("listen: %w", err), closed(hooks))
	}
	cloud, err := openstacksim.Open(options)
	if err != nil {
		return errors.Join(err, listener.Close(), closed(hooks))
	}
	return serveBoth(ctx, cloud, at, [2]net.Listener{listener, hooks})
}

// closed closes a listener that may be nil.
func closed(listener net.Listener) error {
	if listener == nil {
		return nil
	}
	return listener.Close()
}

// serveBoth serves the APIs and the hooks until ctx ends.
func serveBoth(ctx context.Context, cloud *openstacksim.Cloud, at places, listeners [2]net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{Handler: cloud.Handler(), ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 2)
	scheme := "http"
	if at.cert != "" {
		scheme = "https"
		go func() { ended <- server.ServeTLS(listeners[0], at.cert, at.key) }()
	} else {
		go func() { ended <- server.Serve(listeners[0]) }()
	}
	hooksEnded := make(chan error, 1)
	if listeners[1] == nil {
		close(hooksEnded)
	} else {
		hooks := grpc.NewServer(grpc.MaxRecvMsgSize(contract.MaxMessageBytes))
		cloud.Register(hooks)
		go func() { hooksEnded <- socket.Serve(ctx, hooks, listeners[1], grace) }()
	}
	fmt.Fprintln(os.Stdout, ready(scheme, listeners[0].Addr()))
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
		stop()
	}
	// Calls that are held end with the cloud, not with the server that waits for them.
	err = errors.Join(err, cloud.Close())
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if server.Shutdown(ending) != nil {
		err = errors.Join(err, server.Close())
	}
	return errors.Join(err, <-hooksEnded)
}

// ready is what the command says when it serves.
func ready(scheme string, address net.Addr) string {
	line, _ := json.Marshal(map[string]string{"identityEndpoint": scheme + "://" + address.String() + "/v3"}) // strings can be written
	return string(line)
}

// readWorld returns what exists: what does by default, and what a file has besides.
func readWorld(at places) (openstacksim.World, error) {
	if at.config == "" {
		return openstacksim.DefaultWorld(), nil
	}
	file, err := os.Open(at.config)
	if err != nil {
		return openstacksim.World{}, err
	}
	defer file.Close()
	more, err := openstacksim.ReadWorld(file)
	if err != nil {
		return openstacksim.World{}, fmt.Errorf("%s: %w", at.config, err)
	}
	if at.alone {
		return more, nil
	}
	return openstacksim.DefaultWorld().With(more), nil
}

// parseRange reads a duration, or two with a dash between them.
func parseRange(s string) (from, to time.Duration, err error) {
	low, high, isRange := strings.Cut(s, "-")
	if from, err = time.ParseDuration(low); err != nil || !isRange {
		return from, from, err
	}
	if to, err = time.ParseDuration(high); err == nil && to < from {
		err = fmt.Errorf("%s is longer than %s", low, high)
	}
	return from, to, err
}
