// Command driver-conformance shows whether a driver keeps to the contract, in whatever language it
// is written: `run` tries it, `list` says what is tried, `cleanup` deletes what a run has left that
// was killed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/conformance/mutant"
	protofiles "github.com/millwright-dev/millwright/proto"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute does what the arguments say, and returns the exit code: 0, 1 for a driver that does not
// conform, 2 for what could not be done, 3 for a driver that was not tried whole.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	root := &cobra.Command{
		Use:           "driver-conformance",
		Version:       version,
		Short:         "Show whether a driver keeps to Millwright's contract",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), listCommand(), cleanupCommand())
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	switch {
	case errors.Is(err, errBroken):
		return 1
	case errors.Is(err, errNotTriedWhole):
		return 3
	case err != nil:
		fmt.Fprintln(errs, "driver-conformance:", err)
		return 2
	}
	return 0
}

// The report has said it all.
var (
	errBroken        = errors.New("the driver does not conform")
	errNotTriedWhole = errors.New("no breach was found, and not all of a profile was tried")
)

// target are the flags that say which driver is meant.
type target struct {
	config, endpoint, backend string
}

func (f *target) add(command *cobra.Command) {
	command.Flags().StringVar(&f.config, "config", "", "The YAML file that says what to try the driver with (required).")
	command.Flags().StringVar(&f.endpoint, "endpoint", "", "Where the driver serves, as unix:///path or dns:///host:port?tls=/folder, or how it is started, as exec:///path?arg=…, in place of the config's.")
	command.Flags().StringVar(&f.backend, "backend", "", "Where the test cloud serves its hooks, as unix:///path, in place of the config's.")
	_ = command.MarkFlagRequired("config") // it was just defined
}

func (f *target) read() (conformance.Config, error) {
	raw, err := os.ReadFile(f.config)
	if err != nil {
		return conformance.Config{}, fmt.Errorf("--config: %w", err)
	}
	var c conformance.Config
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		return conformance.Config{}, fmt.Errorf("--config: %s: %w", f.config, err)
	}
	if f.endpoint != "" {
		c.Endpoint = f.endpoint
	}
	if f.backend != "" {
		c.Backend = f.backend
	}
	return c, nil
}

func listCommand() *cobra.Command {
	var mutants, musts bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the checks: level, tier, what they need, and the rule of the contract",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if musts {
				return listMusts(command.OutOrStdout())
			}
			if mutants {
				return listMutants(command.OutOrStdout())
			}
			return listChecks(command.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&mutants, "mutants", false, "List instead the ways in which a good driver was broken to try the checks, each with the check that catches it.")
	command.Flags().BoolVar(&musts, "musts", false, "List instead the numbered rules of the contract, each with the checks that try it.")
	command.MarkFlagsMutuallyExclusive("mutants", "musts")
	return command
}

func listChecks(out io.Writer) error {
	for _, c := range conformance.Checks() {
		needs := ""
		if c.Feature != 0 {
			needs = " " + c.Feature.String()
		}
		if c.Hooks {
			needs += " backend"
		}
		if c.Proxy {
			needs += " faultProxy"
		}
		if c.Launch {
			needs += " exec"
		}
		if _, err := fmt.Fprintf(out, "%-26s %-6s %s%s %s\n    %s\n", c.ID, c.Level, c.Tier, needs, numbers(c.Musts), c.Rule); err != nil {
			return err
		}
	}
	return nil
}

// numbers are those of rules, as the contract has them.
func numbers(musts []int) string {
	var all []string
	for _, must := range musts {
		all = append(all, fmt.Sprintf("M%d", must))
	}
	return strings.Join(all, " ")
}

// listMusts prints each rule of the contract with what it is about, and which checks try it, or why
// none does.
func listMusts(out io.Writer) error {
	for _, m := range protofiles.Musts() {
		var by []string
		for _, c := range conformance.Checks() {
			if slices.Contains(c.Musts, m.Number) {
				by = append(by, c.ID)
			}
		}
		tried := strings.Join(by, ", ")
		if why := conformance.Untried()[m.Number]; why != "" {
			tried = "not tried: " + why
		}
		if _, err := fmt.Fprintf(out, "M%-4d %s\n      %s: %s\n", m.Number, tried, m.Subject, m.Sentence); err != nil {
			return err
		}
	}
	return nil
}

func listMutants(out io.Writer) error {
	for _, m := range mutant.All() {
		if _, err := fmt.Fprintf(out, "%-28s %s\n", m.Name, m.Check); err != nil {
			return err
		}
	}
	return nil
}

func cleanupCommand() *cobra.Command {
	var f target
	var runID string
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Delete what a run has left",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := f.read()
			if err != nil {
				return err
			}
			n, err := conformance.Clean(command.Context(), c, runID)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "nothing is left of the run %s: asked about %d machines\n", runID, n)
			return err
		},
	}
	f.add(command)
	command.Flags().StringVar(&runID, "run-id", "", "The run, as it was printed when it began (required).")
	_ = command.MarkFlagRequired("run-id") // it was just defined
	return command
}
