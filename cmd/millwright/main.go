// Command millwright is Millwright on one machine: `dev` and `demo` run all of it, and `driver
// init` begins a driver. For clusters there is the plugin kubectl-millwright.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "dev"

func main() {
	// What libraries have to say goes where the stack's own steps go.
	ctrl.SetLogger(logr.FromSlogHandler(stepLog().Handler()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "millwright",
		Version:       version,
		Short:         "Run Millwright on this machine, or begin a driver",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(devCommand(), demoCommand(), driverCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "millwright:", err)
		os.Exit(1)
	}
}
