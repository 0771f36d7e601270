// Command release makes what a release of Millwright consists of, from executables that the
// Makefile has built: `images` makes the container images, `files` what people download, and
// `modules` the tags of Go modules.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "release", Short: "Make what a release consists of", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(imagesCommand(), filesCommand(), modulesCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
