package main

import (
	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/cmd/demo"
	"github.com/millwright-dev/millwright/localcluster/stack"
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
			if flags.cloud != stack.QEMU().Name() { // its VMs are slow enough
				options.CloudArgs = append(watchable(), options.CloudArgs...)
			}
			return demo.Run(command.Context(), demo.Options{Stack: options, Out: command.OutOrStdout(), Keep: keep})
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&keep, "keep", false, "Leave everything running before it is deleted, until Ctrl-C.")
	return command
}

// watchable makes the cloud as slow as a person needs to follow it.
func watchable() []string {
	return []string{"--call-latency=50ms-300ms", "--boot-latency=1s", "--delete-latency=300ms"}
}
