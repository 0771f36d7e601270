// Command chaos runs a campaign of chaos against a whole Millwright on this machine: see
// docs/chaos.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/chaos/arena"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
	"github.com/millwright-dev/millwright/test/chaos/planted"
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
	o := arena.Options{Out: os.Stdout, Log: slog.New(slog.DiscardHandler)}
	log.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	flag.Uint64Var(&o.Seed, "seed", rand.Uint64(), "what the rounds follow from; drawn when not given")
	flag.IntVar(&o.Rounds, "rounds", 20, "how many rounds")
	flag.IntVar(&o.First, "first", 1, "the number of the first round")
	flag.DurationVar(&o.Plan.Window, "window", 2500*time.Millisecond, "how long things go on happening in a round")
	flag.BoolVar(&o.Plan.ControlPlane, "control-plane", true, "disturb the API server and etcd, too")
	flag.BoolVar(&o.Plan.Strays, "strays", true, "leave VMs without a Machine")
	flag.BoolVar(&o.Plan.Team, "team", true, "let a team with credentials of its own come and go")
	flag.BoolVar(&o.Plan.Claims, "claims", true, "make Machines by hand that name somebody else's VM")
	flag.BoolVar(&o.Plan.Hooks, "hooks", true, "hold deletions by annotations")
	flag.BoolVar(&o.Plan.Sickness, "sickness", true, "have Nodes report that they are not Ready")
	flag.BoolVar(&o.Plan.Volumes, "volumes", true, "attach volumes to machines that are to be drained")
	flag.BoolVar(&o.Plan.Outages, "outages", true, "take the API server away for so long that Nodes count as lost, while machines are drained")
	flag.IntVar(&o.Slowness, "slow", 1, "how many times longer things may take, on a machine that has other things to do")
	flag.StringVar(&o.BinDir, "bin", "bin", "where the control plane's executables are")
	flag.StringVar(&o.CommandDir, "commands", "bin/race", "where Millwright's executables are")
	flag.StringVar(&o.DeployDir, "deploy", "deploy", "the repository's deploy folder")
	flag.StringVar(&o.Dir, "dir", "", "where to write, a short path; empty: a new folder, removed if all is well")
	flag.DurationVar(&o.Forgetful, "forgetful", 0, "with -cloud fake: have the cloud forget VMs that are gone, and the driver not declare how late a create may land; core takes it for so long")
	cloud := flag.String("cloud", clouds.All()[0].Name(), "the test cloud: fake or openstack")
	layout := flag.String("layout", string(stack.OneCluster), "where the Nodes are: one-cluster or two-clusters")
	upstream := flag.String("upstream", "", "with -cloud openstack: a file that names real services to run it on, as environment.json of make openstack-up")
	bug := flag.String("planted", "", "plant this bug into the manager, and see whether it is found; all: each in turn")
	flag.Parse()
	var known bool
	if o.Cloud, known = clouds.Find(*cloud); !known {
		return fmt.Errorf("no cloud is called %q", *cloud)
	}
	if o.Layout = stack.Layout(*layout); o.Layout != stack.OneCluster && o.Layout != stack.TwoClusters {
		return fmt.Errorf("-layout %s: choose %s or %s", *layout, stack.OneCluster, stack.TwoClusters)
	}
	if err := checkForgetful(o); err != nil {
		return err
	}
	if *upstream != "" {
		if o.Cloud.Name() != stack.OpenStack().Name() {
			return fmt.Errorf("-upstream names services of OpenStack, and -cloud is %s", *cloud)
		}
		o.Cloud = clouds.OpenStackServices(*upstream)
	}
	if *bug == "" {
		return campaign(o.Dir, func(dir string) error {
			o.Dir = dir
			_, err := arena.Run(ctx, o)
			return err
		})
	}
	bugs := planted.Bugs()
	if one, ok := planted.Find(*bug); ok {
		bugs = []planted.Bug{one}
	} else if *bug != "all" {
		return fmt.Errorf("no bug is called %q", *bug)
	}
	for _, b := range bugs {
		if err := campaign(o.Dir, func(dir string) error { return hunt(ctx, o, b, dir) }); err != nil {
			return err
		}
	}
	return nil
}

func checkForgetful(o arena.Options) error {
	switch {
	case o.Forgetful < 0:
		return fmt.Errorf("-forgetful %s: give a time above 0, such as 2s", o.Forgetful)
	case o.Forgetful > 0 && o.Cloud.Name() != stack.Fake().Name():
		return fmt.Errorf("-forgetful is for the fake cloud, and -cloud is %s", o.Cloud.Name())
	}
	return nil
}

// campaign gives do a folder, and removes it if all was well and it was not asked for.
func campaign(dir string, do func(dir string) error) error {
	if dir != "" {
		return do(dir)
	}
	// Sockets lie in it: its path has to be short.
	dir, err := os.MkdirTemp("", "mw-chaos-")
	if err != nil {
		return err
	}
	if err := do(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// hunt runs a campaign against a manager with a bug, which has to break a promise that the bug is
// known to break.
func hunt(ctx context.Context, o arena.Options, b planted.Bug, dir string) error {
	fmt.Printf("planted %s: %s\n", b.Name, b.What)
	commands := filepath.Join(dir, "commands")
	if err := os.RemoveAll(commands); err != nil {
		return err
	}
	if err := b.Build(ctx, ".", o.CommandDir, commands); err != nil {
		return err
	}
	o.CommandDir, o.Dir = commands, dir
	violations, err := arena.Run(ctx, o)
	if err == nil {
		return fmt.Errorf("%s was not found in %d rounds", b.Name, o.Rounds)
	}
	if !errors.Is(err, arena.ErrViolated) {
		return err
	}
	for _, v := range violations {
		if slices.Contains(b.Breaks, v.Promise) {
			fmt.Printf("planted %s: caught by %s\n", b.Name, v.Promise)
			return nil
		}
	}
	return fmt.Errorf("%s was found, but by none of %q: %w", b.Name, b.Breaks, err)
}
