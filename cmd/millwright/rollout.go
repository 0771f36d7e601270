package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/rollout"
)

// clusterFlags say which cluster, as those of kubectl do.
type clusterFlags struct {
	kubeconfig, namespace, kubeContext string
}

func rolloutCommand() *cobra.Command {
	var flags clusterFlags
	command := &cobra.Command{Use: "rollout", Short: "Follow, undo, pause, resume or restart the rollout of a MachineDeployment"}
	command.PersistentFlags().StringVar(&flags.kubeconfig, "kubeconfig", "", "Path of the kubeconfig. Empty: $KUBECONFIG, else ~/.kube/config.")
	command.PersistentFlags().StringVar(&flags.kubeContext, "context", "", "Context of the kubeconfig. Empty: its current one.")
	command.PersistentFlags().StringVarP(&flags.namespace, "namespace", "n", "", "Namespace. Empty: that of the context.")
	add := func(use, short string, do func(context.Context, rollout.Rollout) error) *cobra.Command {
		sub := &cobra.Command{
			Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(command *cobra.Command, args []string) error {
				r, err := flags.rollout(args[0])
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

// rollout returns the rollout of the MachineDeployment of that name, which may be given as kubectl prints it.
func (f *clusterFlags) rollout(name string) (rollout.Rollout, error) {
	var none rollout.Rollout
	if kind, rest, ok := strings.Cut(name, "/"); ok {
		switch kind, _, _ := strings.Cut(strings.ToLower(kind), "."); kind {
		case "md", "machinedeployment", "machinedeployments":
			name = rest
		default:
			return none, fmt.Errorf("%s is no MachineDeployment", name)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.kubeContext})
	config, err := loader.ClientConfig()
	if err != nil {
		return none, err
	}
	namespace := f.namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return none, err
		}
	}
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return none, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, FieldOwner: "millwright-rollout"})
	if err != nil {
		return none, err
	}
	return rollout.Rollout{Client: c, Key: client.ObjectKey{Namespace: namespace, Name: name}}, nil
}
