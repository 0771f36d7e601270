package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/conformance"
)

func runCommand() *cobra.Command {
	var f target
	var focus, waive []string
	var junit, json, tier, profile string
	command := &cobra.Command{
		Use:   "run",
		Short: "Try a driver, and say what it does against the contract",
		Long: "Try a driver, and say what it does against the contract. It makes real machines, with a cluster uid of its own, and deletes them again.\n" +
			"Ends with 0 if the driver conforms to the profile that was asked for, 1 if a MUST is broken, 2 if the driver could not be tried, and 3 if no MUST " +
			"was found broken, and not all of a profile was tried, as in a run that was interrupted.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := f.read()
			if err != nil {
				return err
			}
			if len(focus) > 0 {
				c.Focus = focus
			}
			if profile != "" {
				c.Profile = conformance.Profile(profile)
			}
			if tier != "" {
				c.Tier = conformance.Tier(tier)
			}
			if err := addWaivers(&c, waive); err != nil {
				return err
			}
			out := command.OutOrStdout()
			report, err := conformance.Execute(command.Context(), c, progress(out))
			if report == nil {
				return err
			}
			err = errors.Join(err, save(junit, report.WriteJUnit), save(json, report.WriteJSON), report.WriteText(out))
			return verdict(report, err, command.ErrOrStderr())
		},
	}
	f.add(command)
	command.Flags().StringSliceVar(&focus, "focus", nil, "Run these checks, or groups of checks, alone.")
	command.Flags().StringVar(&profile, "profile", "", "What the driver is to conform to: basic, hooks (looks into the cloud, too), fault (has things fail, too), or http (basic, and has the cloud's HTTP API fail).")
	command.Flags().StringVar(&tier, "tier", "", "Run the checks of one tier alone: core, or fault, which has things fail in the middle of a call.")
	command.Flags().StringArrayVar(&waive, "waive", nil, "A check that may fail or lack what it needs, and why, as ID=REASON. Repeat for several.")
	command.Flags().StringVar(&junit, "junit", "", "Write a JUnit report to this file.")
	command.Flags().StringVar(&json, "json", "", "Write the whole report as JSON to this file.")
	return command
}

// verdict is how the command ends. What a broken driver has left is told beside its verdict.
func verdict(report *conformance.Report, err error, errs io.Writer) error {
	switch report.Verdict() {
	case conformance.Conforms:
		return err
	case conformance.NoBreach, conformance.Interrupted:
		if err == nil {
			err = errNotTriedWhole
		}
		return err
	case conformance.Breaks:
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "driver-conformance:", err)
	}
	return errBroken
}

func addWaivers(c *conformance.Config, waive []string) error {
	for _, w := range waive {
		id, reason, ok := strings.Cut(w, "=")
		if !ok || reason == "" {
			return fmt.Errorf("--waive=%s: say why, as --waive=ID=REASON", w)
		}
		if c.Waive == nil {
			c.Waive = map[string]string{}
		}
		c.Waive[id] = reason
	}
	return nil
}

// progress prints each check as it ends.
func progress(out io.Writer) conformance.Observer {
	return conformance.Observer{
		Begin: func(runID string) {
			_, _ = fmt.Fprintf(out, "run %s; if it is killed: driver-conformance cleanup --run-id %s\n", runID, runID)
		},
		Done: func(r conformance.Result) {
			_, _ = fmt.Fprintf(out, "%-8s %s (%s)\n", r.Outcome, r.ID, r.Duration.Round(time.Millisecond))
		},
	}
}

// save writes a report to a file, if one is named.
func save(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
