// Command millwright runs Millwright on this machine: `dev` for work, `demo` to watch.
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

func main() {
	// What libraries have to say goes where the stack's own steps go.
	ctrl.SetLogger(logr.FromSlogHandler(stepLog().Handler()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "millwright",
		Short:         "Run Millwright on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(devCommand(), demoCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "millwright:", err)
		os.Exit(1)
	}
}
