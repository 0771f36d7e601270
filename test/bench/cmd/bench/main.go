// Command bench measures Millwright beside the floor: see package bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/test/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	measure := run
	if os.Getenv(bench.AsDriver) != "" {
		measure = bench.ServeNothing
	}
	err := measure(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o := bench.Options{Out: os.Stdout, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	log.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	flag.IntVar(&o.Machines, "machines", 1000, "how many machines there are at most, but for a rollout's surge")
	flag.StringVar(&o.BinDir, "bin", "bin", "the folder of all executables")
	flag.StringVar(&o.DeployDir, "deploy", "deploy", "the folder of the manifests")
	flag.DurationVar(&o.Idle, "idle", 0, "how long the idle fleet settles, and then how long its writes are counted (default 1m)")
	flag.BoolVar(&o.Autoscaler, "autoscaler", false, "let the MachineDeployment carry the sizes of an autoscaler")
	flag.BoolVar(&o.Join, "join", false, "let the simulated kubelets join with tokens and certificates, as real ones do")
	flag.StringVar(&o.Profiles, "profiles", "", "the folder that gets the manager's profiles; empty: none")
	out := flag.String("out", "bin/bench.json", "the file that gets the report as JSON")
	flag.StringVar(&o.Dir, "dir", "", "the folder of the cluster, with all logs; empty: one that is removed after a good run")
	flag.Func("manager-arg", "added to the manager's command line; may be repeated", func(s string) error {
		o.ManagerArgs = append(o.ManagerArgs, s)
		return nil
	})
	flag.Parse()
	if o.Machines < 1 {
		return fmt.Errorf("-machines=%d: must be at least 1", o.Machines)
	}
	temporary := o.Dir == ""
	if temporary {
		var err error
		// Sockets lie in it: its path has to be short.
		if o.Dir, err = os.MkdirTemp("", "mw-bench-"); err != nil {
			return err
		}
	}
	report, err := bench.Run(ctx, o)
	if report != nil {
		err = errors.Join(err, report.WriteFile(*out))
	}
	if err != nil {
		return fmt.Errorf("%w\nlogs of all processes are in %s", err, o.Dir)
	}
	if temporary {
		return os.RemoveAll(o.Dir)
	}
	return nil
}
