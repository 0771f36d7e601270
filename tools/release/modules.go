package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/tools/release/modules"
)

func modulesCommand() *cobra.Command {
	var r modules.Release
	var unix int64
	var out string
	command := &cobra.Command{
		Use:   "modules",
		Short: "Make the commit and the tags under which Go modules can be imported, and a module proxy of files",
		Long: "Writes to --out a git bundle with the commit and the tags, for whoever may push them, and the folder modules, which GOPROXY=file://… reads.\n" +
			"The repository itself is only read.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			r.Created = time.Unix(unix, 0)
			tags, err := modules.Publish(command.Context(), r, out)
			for _, tag := range tags {
				_, _ = fmt.Fprintln(command.OutOrStdout(), tag)
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.Version, "version", "", "The release, such as v0.1.0 (required).")
	flags.StringVar(&r.Repository, "repository", ".", "The repository's folder, whose HEAD is released.")
	flags.StringSliceVar(&r.Private, "private", []string{"test"}, "Folders of modules that nobody imports.")
	flags.Int64Var(&unix, "created", 0, "When its commit was made, in seconds since 1970 (required).")
	flags.StringVar(&out, "out", "", "The folder to write to, which exists (required).")
	for _, required := range []string{"version", "created", "out"} {
		_ = command.MarkFlagRequired(required) // it was just defined
	}
	return command
}
