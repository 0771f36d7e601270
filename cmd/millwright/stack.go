package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/localcluster/stack"
)

// stackFlags are what dev and demo have in common.
type stackFlags struct {
	dir, binDir, commandDir, deployDir, cloud, driver string
	cloudArgs, managerArgs                            []string
}

func (f *stackFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.dir, "dir", "", "Where everything is written; its path must be short. Empty: a new temporary directory, removed at the end.")
	flags.StringVar(&f.binDir, "bin-dir", "", "Where the control plane's executables are. Empty: beside this one.")
	flags.StringVar(&f.commandDir, "command-dir", "", "Where Millwright's own executables are. Empty: beside this one.")
	flags.StringVar(&f.deployDir, "deploy-dir", "", "The repository's deploy folder. Empty: ../deploy, seen from this executable.")
	flags.StringVar(&f.cloud, "cloud", providerNames()[0], "Which cloud to run: "+strings.Join(providerNames(), ", ")+".")
	flags.StringVar(&f.driver, "driver", "", "Name of the driver's executable. Empty: the cloud's own.")
	flags.StringArrayVar(&f.cloudArgs, "cloud-arg", nil, "A flag for the cloud, such as --cloud-arg=--call-latency=0.2s-2s. Repeat for several.")
	flags.StringArrayVar(&f.managerArgs, "manager-arg", nil, "A flag for the manager, such as --manager-arg=-v=4. Repeat for several.")
}

// options returns what to start, and what to call at the end.
func (f *stackFlags) options() (options stack.Options, cleanUp func(), err error) {
	chosen := slices.Index(providerNames(), f.cloud)
	if chosen < 0 {
		return options, nil, fmt.Errorf("--cloud=%s: there is no such cloud; there are: %s", f.cloud, strings.Join(providerNames(), ", "))
	}
	self, err := os.Executable()
	if err != nil {
		return options, nil, fmt.Errorf("find this executable, the default of --bin-dir: %w", err)
	}
	here := filepath.Dir(self)
	options = stack.Options{
		BinDir:      cmp.Or(f.binDir, here),
		CommandDir:  cmp.Or(f.commandDir, here),
		DeployDir:   cmp.Or(f.deployDir, filepath.Join(here, "..", "deploy")),
		Dir:         f.dir,
		Provider:    stack.Providers()[chosen],
		Driver:      f.driver,
		CloudArgs:   f.cloudArgs,
		ManagerArgs: f.managerArgs,
		AuditLog:    true,
		Log:         stepLog(),
	}
	if f.dir != "" {
		return options, func() {}, nil
	}
	options.Dir, err = os.MkdirTemp("", "millwright-")
	if err != nil {
		return options, nil, fmt.Errorf("make a directory, the default of --dir: %w", err)
	}
	return options, func() { _ = os.RemoveAll(options.Dir) }, nil
}

// providerNames are what --cloud can be; the first one is the default.
func providerNames() []string {
	var names []string
	for _, p := range stack.Providers() {
		names = append(names, p.Name())
	}
	return names
}

// stepLog tells the person at the terminal what happens.
func stepLog() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
