// Command suite runs what `make test` and `make test-long` consist of, at the top of a checkout:
//
//	suite test                     every step of `make test`
//	suite long [-again] [PART...]  parts of `make test-long`; all without a name
//	suite changed [-base BRANCH] [-list]
//	                               the parts with an input that this branch has changed
//	suite list                     all parts, and what each shows
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/millwright-dev/millwright/test/suite"
)

const usage = "usage: suite test | long [-again] [PART...] | changed [-base BRANCH] [-list] | list"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, wrong)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// usageError is a command line that says nothing that this command does.
type usageError string

func (e usageError) Error() string { return string(e) }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usageError(usage)
	}
	runner := suite.Runner{Make: []string{"make"}, Dir: ".", Out: os.Stdout}
	switch args[0] {
	case "test":
		return runner.RunAll(ctx, suite.Steps())
	case "long":
		return long(ctx, runner, args[1:])
	case "changed":
		return changed(ctx, runner, args[1:])
	case "list":
		for _, part := range suite.Parts() {
			fmt.Printf("%-15s %s\n", part.Name, part.Shows)
		}
		return nil
	default:
		return usageError(usage)
	}
}

func long(ctx context.Context, runner suite.Runner, args []string) error {
	flags := flag.NewFlagSet("long", flag.ContinueOnError)
	again := flags.Bool("again", false, "run parts again that passed with these inputs")
	if err := flags.Parse(args); err != nil {
		return usageError(usage)
	}
	parts, err := named(flags.Args())
	if err != nil {
		return err
	}
	return runParts(ctx, runner, parts, *again)
}

// named returns the parts of these names; all without a name.
func named(names []string) ([]suite.Part, error) {
	all := suite.Parts()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, part := range all {
		known = append(known, part.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no part %q: choose from %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(p suite.Part) bool { return !slices.Contains(names, p.Name) }), nil
}

func changed(ctx context.Context, runner suite.Runner, args []string) error {
	flags := flag.NewFlagSet("changed", flag.ContinueOnError)
	base := flags.String("base", "origin/main", "the branch that this one is compared with")
	list := flags.Bool("list", false, "only print the names of the parts")
	if err := flags.Parse(args); err != nil {
		return usageError(usage)
	}
	tree, err := suite.Open(ctx, root())
	if err != nil {
		return err
	}
	files, err := tree.Changed(ctx, *base)
	if err != nil {
		return err
	}
	parts, err := tree.Selected(ctx, suite.Parts(), files)
	if err != nil {
		return err
	}
	if *list {
		for _, part := range parts {
			fmt.Println(part.Name)
		}
		return nil
	}
	if len(parts) == 0 {
		fmt.Printf("none of the %d files that differ from %s is an input of a part of `make test-long`\n", len(files), *base)
		return nil
	}
	return runParts(ctx, runner, parts, false)
}

func runParts(ctx context.Context, runner suite.Runner, parts []suite.Part, again bool) error {
	tree, err := suite.Open(ctx, root())
	if err != nil {
		return err
	}
	return suite.Long{Runner: runner, Tree: tree, Folder: "bin/results/long", Again: again, Special: isSpecial(os.Getenv("MAKEFLAGS"))}.Run(ctx, parts)
}

// isSpecial says whether a variable on make's command line changes how parts are run, such as RUN
// or SHORT. Those that only choose parts do not.
func isSpecial(flags string) bool {
	_, variables, _ := strings.Cut(" "+flags, " -- ")
	for variable := range strings.FieldsSeq(variables) {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.Contains([]string{"PART", "AGAIN", "BASE", "LIST"}, name) {
			return true
		}
	}
	return false
}

// root is the top of the checkout.
func root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}
