// Command kubectl-millwright is Millwright's plugin of kubectl, `kubectl millwright`. `describe`,
// `plan`, `rollout`, `scale`, `top`, `tree` and `ui` are for those who have MachineDeployments;
// `artifacts`, `drivers`, `uninstall` and `userdata` for those who run the manager.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// What libraries have to say goes where the plugin's own warnings go.
	ctrl.SetLogger(logr.FromSlogHandler(stderrLog().Handler()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := rootCommand().ExecuteContext(ctx)
	if errors.Is(err, errMachinesChange) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-millwright",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl millwright"},
		Short:         "Work with MachineDeployments and their Machines, and with Millwright's manager",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	where := newCluster()
	where.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		artifactsCommand(), describeCommand(where), driversCommand(where), planCommand(where), rolloutCommand(where), scaleCommand(where), topCommand(where), treeCommand(where), uiCommand(where),
		uninstallCommand(where), userDataCommand(where), versionCommand(),
	)
	return root
}

// stderrLog tells the person at the terminal what happens.
func stderrLog() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
