// Command millwright-manager turns MachineDeployments, MachineSets and Machines into VMs, through
// drivers.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/millwright-dev/millwright/core/manager"
)

// version is set by the linker.
var version = "dev"

// garbagePercent is how much garbage may lie beside what lives, where $GOGC does not say. What
// lives are mostly caches: with Go's default of 100, memory would be twice the fleet's.
// docs/benchmarks.md has what it costs.
const garbagePercent = 30

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "millwright-manager:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	settings, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if settings.version {
		_, err := fmt.Println("millwright-manager", version)
		return err
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-settings.verbosity)}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	if settings.options.ProfilingAddress == "" {
		runtime.MemProfileRate = 0 // nobody can read its records, which take 2 MiB
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	limitMemory(log, memlimit.FromCgroup)
	if err := useSmallerBuffers(); err != nil {
		return err
	}
	config, err := restConfig(settings.kubeconfig)
	if err != nil {
		return err
	}
	settings.options.Version = version
	return manager.Run(ctrl.SetupSignalHandler(), config, settings.options, log)
}
