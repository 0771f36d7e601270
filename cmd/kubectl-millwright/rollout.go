package main

import (
	"context"

	"github.com/spf13/cobra"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/rollout"
)

func rolloutCommand(where *cluster) *cobra.Command {
	command := &cobra.Command{Use: "rollout", Short: "Follow, undo, pause, resume or restart the rollout of a MachineDeployment"}
	add := func(use, short string, do func(context.Context, rollout.Rollout) error) *cobra.Command {
		sub := &cobra.Command{
			Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(command *cobra.Command, args []string) error {
				r, err := where.rollout(args[0])
				if err != nil {
					return err
				}
				r.Out = command.OutOrStdout()
				return do(command.Context(), r)
			},
		}
		command.AddCommand(sub)
		return sub
	}
	watch, revision := true, int64(0)
	status := add("status", "Tell how the rollout gets on, until it is complete", func(ctx context.Context, r rollout.Rollout) error {
		return r.Status(ctx, watch)
	})
	status.Flags().BoolVarP(&watch, "watch", "w", true, "Wait until the rollout is complete.")
	add("history", "List the revisions that can be returned to", func(ctx context.Context, r rollout.Rollout) error { return r.History(ctx) })
	undo := add("undo", "Return to the template of a former revision; labels, annotations, taints and timeouts stay as they are",
		func(ctx context.Context, r rollout.Rollout) error { return r.Undo(ctx, revision) })
	undo.Flags().Int64Var(&revision, "to-revision", 0, "The revision to return to. 0: the one before the current.")
	add("pause", "Stop the rollout; scaling goes on", func(ctx context.Context, r rollout.Rollout) error { return r.Pause(ctx) })
	add("resume", "Let the rollout go on", func(ctx context.Context, r rollout.Rollout) error { return r.Resume(ctx) })
	add("restart", "Replace all machines by others of the same template", func(ctx context.Context, r rollout.Rollout) error { return r.Restart(ctx) })
	return command
}

func scaleCommand(where *cluster) *cobra.Command {
	var replicas int32
	var watch bool
	command := &cobra.Command{
		Use: "scale NAME --replicas N", Short: "Give a MachineDeployment another size, and follow it there", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			r, err := where.rollout(args[0])
			if err != nil {
				return err
			}
			r.Out = command.OutOrStdout()
			if err := r.Scale(command.Context(), replicas); err != nil || !watch {
				return err
			}
			return r.Status(command.Context(), true)
		},
	}
	command.Flags().Int32Var(&replicas, "replicas", 0, "How many machines there should be.")
	_ = command.MarkFlagRequired("replicas") // it is a flag of this command
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Wait until they are available, and the others are gone.")
	return command
}

// rollout returns the rollout of the MachineDeployment of that name, which may be given as kubectl
// prints it.
func (c *cluster) rollout(name string) (rollout.Rollout, error) {
	var none rollout.Rollout
	name, err := nameOf(name, "md", "machinedeployment", "machinedeployments")
	if err != nil {
		return none, err
	}
	api, namespace, err := c.connect(clusterv1alpha1.AddToScheme, autoscalingv1.AddToScheme)
	if err != nil {
		return none, err
	}
	return rollout.Rollout{Client: client.WithFieldOwner(api, "millwright-rollout"), Key: client.ObjectKey{Namespace: namespace, Name: name}}, nil
}
