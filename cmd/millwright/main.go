// Command millwright is Millwright at hand. `rollout` is for those who have MachineDeployments,
// `artifacts`, `drivers`, `userdata` and `uninstall` for those who run the manager. `dev` and
// `demo` run all of it on this machine, and `driver init` begins a driver. Under the name
// kubectl-millwright it is a plugin of kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
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
		Short:         "Work with MachineDeployments, run Millwright on this machine, or begin a driver",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if name := filepath.Base(os.Args[0]); strings.HasPrefix(name, "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl millwright"}
	}
	root.AddCommand(artifactsCommand(), devCommand(), demoCommand(), driverCommand(), driversCommand(), rolloutCommand(), uninstallCommand(), userDataCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "millwright:", err)
		os.Exit(1)
	}
}
