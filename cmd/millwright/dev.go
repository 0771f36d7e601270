package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/localcluster/stack"
)

func devCommand() *cobra.Command {
	var flags stackFlags
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster, the manager, a test cloud, its driver and simulated kubelets until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return dev(command, &flags)
		},
	}
	flags.add(command)
	return command
}

func dev(command *cobra.Command, flags *stackFlags) (err error) {
	options, cleanUp, err := flags.options()
	if err != nil {
		return err
	}
	defer cleanUp()
	ctx := command.Context()
	whole, err := stack.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, whole.Stop()) }()
	fmt.Fprintf(command.OutOrStdout(), "ready: KUBECONFIG=%s\n", whole.Kubeconfig())
	if environment := whole.CloudEnvironment(); len(environment) > 0 {
		fmt.Fprintf(command.OutOrStdout(), "its cloud: %s\n", assignments(environment))
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-whole.Failed():
		return err
	}
}

// assignments writes variables for a shell, sorted by name.
func assignments(environment map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		list = append(list, name+"="+environment[name])
	}
	return strings.Join(list, " ")
}
