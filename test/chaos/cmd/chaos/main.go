// Command chaos runs a campaign of chaos against a whole Millwright on this machine: see docs/chaos.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/test/chaos/arena"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o := arena.Options{Out: os.Stdout, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1}))}
	flag.Uint64Var(&o.Seed, "seed", rand.Uint64(), "what the rounds follow from; drawn when not given")
	flag.IntVar(&o.Rounds, "rounds", 20, "how many rounds")
	flag.IntVar(&o.First, "first", 1, "the number of the first round")
	flag.DurationVar(&o.Plan.Window, "window", 2500*time.Millisecond, "how long things go on happening in a round")
	flag.BoolVar(&o.Plan.ControlPlane, "control-plane", true, "disturb the API server and etcd, too")
	flag.StringVar(&o.BinDir, "bin", "bin", "where the control plane's executables are")
	flag.StringVar(&o.CommandDir, "commands", "bin/race", "where Millwright's executables are")
	flag.StringVar(&o.DeployDir, "deploy", "deploy", "the repository's deploy folder")
	flag.StringVar(&o.Dir, "dir", "", "where to write, a short path; empty: a new folder, removed if all is well")
	flag.Parse()
	temporary := o.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "mw-chaos-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	if _, err := arena.Run(ctx, o); err != nil {
		return err
	}
	if temporary {
		return os.RemoveAll(o.Dir)
	}
	return nil
}
