package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/uninstall"
)

func uninstallCommand(where *cluster) *cobra.Command {
	var confirmed, dryRun bool
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Delete all Machines with their VMs, then Millwright's CRDs",
		Long: "Delete all MachineDeployments, MachineSets and Machines of all namespaces, and wait until the manager has deleted their VMs; then\n" +
			"MachineClasses, Clusters, and the CRDs with what protects them. No CRD goes before its last object. The manager itself stays: remove it\n" +
			"afterwards, as it was installed. It can be interrupted, and run again.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, namespace, err := where.connectToManager(clusterv1alpha1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme)
			if err != nil {
				return err
			}
			u := uninstall.Uninstall{
				Client: c, Out: command.OutOrStdout(),
				Leads: func(ctx context.Context) error { return leads(ctx, c, namespace, time.Now()) },
			}
			ctx := command.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			if err := u.Show(ctx); err != nil || dryRun {
				return err
			}
			if !confirmed {
				return uninstall.ErrUnconfirmed
			}
			return u.Run(ctx)
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "Only count what would be deleted.")
	command.Flags().BoolVar(&confirmed, "yes", false, "Delete it: without this flag nothing is deleted.")
	command.Flags().DurationVar(&timeout, "timeout", 0, "How long it may take. 0: as long as it takes.")
	return command
}
