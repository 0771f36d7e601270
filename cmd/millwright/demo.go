package main

import (
	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/cmd/demo"
)

func demoCommand() *cobra.Command {
	var flags stackFlags
	var keep bool
	command := &cobra.Command{
		Use:   "demo",
		Short: "Watch a MachineDeployment become Nodes, grow, roll under an application, and go",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, cleanUp, err := flags.options()
			if err != nil {
				return err
			}
			defer cleanUp()
			return demo.Run(command.Context(), demo.Options{Stack: options, Out: command.OutOrStdout(), Keep: keep})
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&keep, "keep", false, "Leave everything running before it is deleted, until Ctrl-C.")
	return command
}
