package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	format := newFormat()
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the plugin's version; that of drivers is in `kubectl millwright drivers`",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			said := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return format.print(command.OutOrStdout(), said, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "kubectl-millwright %s (%s, %s)\n", version, said["go"], said["platform"])
				return err
			})
		},
	}
	format.add(command.Flags())
	return command
}
