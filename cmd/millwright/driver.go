package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/cmd/skeleton"
)

func driverCommand() *cobra.Command {
	command := &cobra.Command{Use: "driver", Short: "Write a driver: begin with one that works"}
	command.AddCommand(driverInitCommand())
	return command
}

func driverInitCommand() *cobra.Command {
	var s skeleton.Skeleton
	command := &cobra.Command{
		Use:   "init NAME",
		Short: "Lay out a driver in Go that builds and keeps to the contract",
		Long: "Lay out a driver in Go that builds and keeps to the contract: the example driver, whose cloud is fakecloud's HTTP API, as a module of\n" +
			"its own under the name that cloudProvider will select it by. docs/writing-a-driver.md says how to go on from there.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("NAME: give one name for the driver, as in: millwright driver init my-cloud; there are %d", len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			s.Name = args[0]
			s.Dir, s.Module = cmp.Or(s.Dir, s.Name), cmp.Or(s.Module, "millwright-driver-"+s.Name)
			if s.Checkout == "" {
				s.Checkout = nearestCheckout()
			}
			if s.Checkout == "" {
				return errors.New("--millwright: neither this folder nor this command lies in a checkout of Millwright: give its path")
			}
			if err := s.Write(); err != nil {
				return err
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "%s is laid out. Its README.md says how to build, run and prove it.\n", s.Dir)
			return err
		},
	}
	command.Flags().StringVar(&s.Dir, "dir", "", "The folder to lay it out in, new or empty. Empty: ./NAME.")
	command.Flags().StringVar(&s.Module, "module", "", "The path of its Go module. Empty: millwright-driver-NAME.")
	command.Flags().StringVar(&s.Checkout, "millwright", "",
		"A checkout of Millwright, from which its go.mod takes the modules until they are tagged.\nEmpty: the one that this folder, or this command, lies in.")
	return command
}

// nearestCheckout returns the checkout that this folder or this executable lies in; empty for none.
func nearestCheckout() string {
	var folders []string
	if here, err := os.Getwd(); err == nil {
		folders = append(folders, here)
	}
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			folders = append(folders, filepath.Dir(self))
		}
	}
	return skeleton.FindCheckout(folders...)
}
