package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/tree"
)

func treeCommand(where *cluster) *cobra.Command {
	var all bool
	format := newFormat("wide", "name")
	command := &cobra.Command{
		Use:   "tree [NAME]",
		Short: "Show MachineDeployments with their MachineSets, Machines and Nodes, and what is wrong with each",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			api, namespace, err := where.connect(clusterv1alpha1.AddToScheme)
			if err != nil {
				return err
			}
			if all {
				namespace = ""
			}
			fleet, err := readFleet(command.Context(), api, namespace)
			if err != nil {
				return err
			}
			items := tree.Build(fleet)
			if len(names) == 1 {
				name, err := nameOf(names[0], "md", "machinedeployment", "machinedeployments")
				if err != nil {
					return err
				}
				items = slices.DeleteFunc(items, func(i *tree.Item) bool { return i.Kind != "MachineDeployment" || i.Name != name })
				if len(items) == 0 {
					return fmt.Errorf("there is no MachineDeployment %q in %s", name, cmp.Or(namespace, "any namespace"))
				}
			}
			return format.print(command.OutOrStdout(), items, func(out io.Writer) error {
				if format.is("name") {
					return tree.PrintNames(out, items)
				}
				return tree.Print(out, items, tree.Options{Namespaces: all, Wide: format.is("wide"), Now: time.Now()})
			})
		},
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Of all namespaces.")
	format.add(command.Flags())
	return command
}

// readFleet reads the objects of a namespace; empty for all.
func readFleet(ctx context.Context, api client.Reader, namespace string) (tree.Fleet, error) {
	var deployments clusterv1alpha1.MachineDeploymentList
	var sets clusterv1alpha1.MachineSetList
	var machines clusterv1alpha1.MachineList
	for _, list := range []client.ObjectList{&deployments, &sets, &machines} {
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return tree.Fleet{}, err
		}
	}
	return tree.Fleet{Deployments: deployments.Items, Sets: sets.Items, Machines: machines.Items}, nil
}
