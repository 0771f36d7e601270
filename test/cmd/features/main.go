// Command features prints, for each numbered behaviour, the tests that show it and how they ended:
//
//	features FEATURES.md RESULT.json...
//	features -long FEATURES.md
//
// The ids are those of the table in FEATURES.md, the results what `go test -json` wrote. A test
// shows a behaviour when its name begins with Test, the behaviour's id and an underscore; it may
// have several ids. The command fails when one of them failed. It also fails when a test names an
// id that there is not.
//
// With -long it prints a table, from the sources below the current folder, of the tests that are
// left to `make test-long`: why, and which tests of `make test` show the same behaviour.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/test/tier/catalog"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: features FEATURES.md RESULT.json...; or features -long FEATURES.md")
		os.Exit(2)
	}
	var err error
	if os.Args[1] == "-long" {
		err = showLong(os.Stdout, ".", os.Args[2])
	} else {
		err = run(os.Stdout, os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		os.Exit(1)
	}
}

// result is how a test ended last.
type result struct{ name, action string }

func run(out io.Writer, list string, logs []string) error {
	ids, err := readIDs(list)
	if err != nil {
		return err
	}
	shown := map[string][]result{}
	for _, log := range logs {
		if err := readResults(log, shown); err != nil {
			return fmt.Errorf("%s: %w", log, err)
		}
	}
	var errs []error
	without := 0
	for _, id := range ids {
		tests := shown[id]
		delete(shown, id)
		if len(tests) == 0 {
			without++
			tests = []result{{"no test yet", ""}}
		}
		slices.SortFunc(tests, func(a, b result) int { return strings.Compare(a.name, b.name) })
		for i, test := range tests {
			if i > 0 {
				id = ""
			}
			_, _ = fmt.Fprintf(out, "%-7s %-70s %s\n", id, test.name, test.action)
			if test.action == "fail" {
				errs = append(errs, fmt.Errorf("%s failed", test.name))
			}
		}
	}
	for id, tests := range shown {
		errs = append(errs, fmt.Errorf("%s shows %s, which %s does not list", tests[0].name, id, path.Base(list)))
	}
	_, _ = fmt.Fprintf(out, "%d of %d behaviours have a test\n", len(ids)-without, len(ids))
	return errors.Join(errs...)
}

var row = regexp.MustCompile(`(?m)^\| ([A-Z]+[0-9]+) \|`)

func readIDs(list string) ([]string, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, match := range row.FindAllSubmatch(text, -1) {
		ids = append(ids, string(match[1]))
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s lists no behaviour", list)
	}
	return ids, nil
}

// readResults adds what a log says of tests that are named after a behaviour; the last word counts.
func readResults(log string, shown map[string][]result) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
		if !slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
			continue
		}
		name := path.Base(event.Package) + "." + event.Test
		for _, id := range catalog.IDs(event.Test) {
			tests := slices.DeleteFunc(shown[id], func(r result) bool { return r.name == name })
			shown[id] = append(tests, result{name, event.Action})
		}
	}
}
