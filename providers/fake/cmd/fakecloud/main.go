// Command fakecloud runs a small cloud in memory for tests and demos, with hooks by which it can be
// watched and made to misbehave. See package cloud.
package main

import (
	"context"
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
	"github.com/millwright-dev/millwright/providers/fake/cloud"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// grace bounds how long calls may take to finish once the cloud is told to end.
const grace = 3 * time.Second

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, os.Args[1:]); err != nil {
		log.Error("fakecloud ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, args []string) error {
	options := cloud.Options{Log: log, Quota: map[string]int64{}, Accounts: map[string]string{}}
	flags := flag.NewFlagSet("fakecloud", flag.ExitOnError)
	listen := flags.String("listen", "", "where to serve, as unix:///path (required)")
	httpListen := flags.String("http", "", "where to serve the cloud's own API as JSON over HTTP, too, as 127.0.0.1:PORT; empty: nowhere")
	flags.BoolVar(&options.Forgetful, "forgetful", false, "forget the client token of a VM together with the VM")
	flags.IntVar(&options.Page, "page", 0, "the most NICs or VMs that a list tells of at once (default 1000)")
	flags.StringVar(&options.Journal, "state", "", "the file that keeps the cloud's state; empty: memory only")
	flags.DurationVar(&options.BootLatency, "boot-latency", 0, "how long a VM takes to boot")
	flags.DurationVar(&options.DeleteLatency, "delete-latency", 0, "how long a VM takes to go")
	flags.Func("call-latency", "how long a call takes, as 1s or 0.2s-2s", func(s string) (err error) {
		options.MinCallLatency, options.MaxCallLatency, err = parseRange(s)
		return err
	})
	flags.Func("quota", "the most resources of a kind in an account, as vm=3; may be repeated", func(s string) error {
		kind, limit, _ := strings.Cut(s, "=")
		n, err := strconv.ParseInt(limit, 10, 64)
		options.Quota[kind] = n
		return err
	})
	flags.Func("account", "an account and the file that holds its key, as NAME=FILE; may be repeated", func(s string) error {
		name, file, _ := strings.Cut(s, "=")
		key, err := os.ReadFile(file)
		options.Accounts[strings.TrimSpace(string(key))] = name
		return err
	})
	_ = flags.Parse(args) // ends the process on error
	return serve(ctx, *listen, *httpListen, options)
}

func serve(ctx context.Context, endpoint, httpAddress string, options cloud.Options) error {
	// The socket's lock also guards the state: it comes first.
	listener, err := socket.Listen(endpoint)
	if err != nil {
		return err
	}
	c, err := cloud.Open(options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if httpAddress != "" {
		if err := serveHTTP(ctx, httpAddress, c.HTTP()); err != nil {
			return errors.Join(err, c.Close(), listener.Close())
		}
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(contract.MaxMessageBytes))
	c.Register(server)
	options.Log.Info("cloud serves", "endpoint", endpoint, "state", options.Journal)
	// Calls that are held end with the cloud, not with the server that waits for them.
	context.AfterFunc(ctx, func() { _ = c.Close() })
	return socket.Serve(ctx, server, listener, grace)
}

// serveHTTP serves until ctx ends. Keys travel in the clear, so it serves this machine alone.
func serveHTTP(ctx context.Context, address string, handler http.Handler) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("-http: %q is not an address of this machine alone: give 127.0.0.1:PORT", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("-http: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: grace}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return nil
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
