package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/plan"
)

// errMachinesChange ends the plugin with the exit code 2 of --detailed-exitcode.
var errMachinesChange = errors.New("machines would be created or deleted")

func planCommand(where *cluster) *cobra.Command {
	var files application
	var detailed bool
	format := newFormat("wide")
	command := &cobra.Command{
		Use:   "plan (NAME | -f FILE)",
		Short: "Tell what a change of a MachineDeployment would replace, and in which waves, before it is applied",
		Long: `Tell what ` + "`kubectl apply -f FILE`" + ` would do to the MachineDeployments in it: which fields change, which machines are replaced for them and in
which waves, and how many are available at the least. Nothing is changed: the API server checks the file in a dry run. With a NAME, tell
what a rollout that goes on has yet to do.

A wave is what happens until machines have to come up or go. Machines that do not come up, other changes and repairs are no part of a plan.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			if (len(names) == 1) == (len(files.names) > 0) {
				return errors.New("give either the name of a MachineDeployment or --filename")
			}
			api, namespace, err := where.connect(clusterv1alpha1.AddToScheme)
			if err != nil {
				return err
			}
			var changes []change
			if len(names) == 1 {
				changes, err = unchanged(command.Context(), api, namespace, names[0])
			} else {
				changes, err = files.dryRun(command.Context(), where, api, command.ErrOrStderr())
			}
			if err != nil {
				return err
			}
			plans, err := makePlans(command.Context(), api, changes)
			if err != nil {
				return err
			}
			if err := printPlans(command.OutOrStdout(), format, plans); err != nil {
				return err
			}
			for _, p := range plans {
				if detailed && !p.IsQuiet() {
					return errMachinesChange
				}
			}
			return nil
		},
	}
	files.addFlags(command.Flags())
	command.Flags().BoolVar(&detailed, "detailed-exitcode", false, "Exit with 0 if no machine would be created or deleted, with 2 if some would, and with 1 after an error.")
	format.add(command.Flags())
	return command
}

// change is a MachineDeployment as it is, nil if it does not exist, and as it would be.
type change struct {
	before, after *clusterv1alpha1.MachineDeployment
}

// unchanged is the change of nothing: what is left is what a rollout has yet to do.
func unchanged(ctx context.Context, api client.Client, namespace, name string) ([]change, error) {
	name, err := nameOf(name, "md", "machinedeployment", "machinedeployments")
	if err != nil {
		return nil, err
	}
	md := &clusterv1alpha1.MachineDeployment{}
	err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, md)
	return []change{{md, md}}, err
}

func makePlans(ctx context.Context, api client.Client, changes []change) ([]*plan.Plan, error) {
	plans := []*plan.Plan{}
	for _, c := range changes {
		fleet, err := readFleet(ctx, api, c.after.Namespace)
		if err != nil {
			return nil, err
		}
		p, err := plan.Make(c.before, c.after, fleet.Sets, fleet.Machines, time.Now())
		if err != nil {
			return nil, fmt.Errorf("machinedeployment %q: %w", c.after.Name, err)
		}
		plans = append(plans, p)
	}
	return plans, nil
}

func printPlans(out io.Writer, format *format, plans []*plan.Plan) error {
	return format.print(out, plans, func(out io.Writer) error {
		for i, p := range plans {
			if i > 0 {
				_, _ = fmt.Fprintln(out)
			}
			if err := p.Print(out, format.is("wide")); err != nil {
				return err
			}
		}
		return nil
	})
}
