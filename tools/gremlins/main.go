// Command mutate breaks the pure packages of a module in many small ways, one at a time. It says
// which of these mutants their tests do not notice. It runs gremlins and judges what gremlins
// reports:
//
//	mutate MODULE PACKAGE[/FILE.go]...
//
// With a file it breaks that file of the package alone: a large package takes hours.
// A mutant that survives has to stand in MODULE/survivors.txt, with the reason why no test could
// tell it from the original. It fails when one is not listed, when one is listed that does not
// survive, and when fewer than 90 % are killed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// least is the share of mutants that has to be killed.
const least = 0.90

func main() {
	// gremlins asks "go" for the coverage: see coverage.
	if filepath.Base(os.Args[0]) == "go" {
		os.Exit(coverage(os.Args[1:]))
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: mutate MODULE PACKAGE[/FILE.go]...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(module string, packages []string) error {
	module, err := filepath.Abs(module)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := prepare(module, dir); err != nil {
		return err
	}
	equivalent, err := readSurvivors(filepath.Join(module, "survivors.txt"))
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range packages {
		found, err := unleash(module, name, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		errs = append(errs, judge(name, found, equivalent))
	}
	for line := range equivalent {
		if slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(line, p+"/") || strings.HasPrefix(line, p+" ") }) {
			errs = append(errs, fmt.Errorf("survivors.txt: does not survive any more: %s", line))
		}
	}
	return errors.Join(errs...)
}

// prepare makes what gremlins needs in dir. gremlins copies a module elsewhere, so its siblings are
// named by absolute paths. The tests must not be answered from a cache: the time that they take
// bounds the time of each mutant's. They are the short ones: a mutant that is noticed in one of
// thousands of histories only lacks a test. The first that fails ends them, and nobody reads the
// shortest history in which it does.
func prepare(module, dir string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		absolute := strings.ReplaceAll(string(raw), "=> ../", "=> "+filepath.Dir(module)+"/")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(absolute), 0o600); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	real, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"GOWORK": "off", "GOFLAGS": "-count=1 -short -failfast -vet=off -ldflags=-w -modfile=" + filepath.Join(dir, "go.mod"),
		"RAPID_SHRINKTIME": "1ms", "RAPID_NOFAILFILE": "true", realGo: real, "PATH": dir + string(os.PathListSeparator) + os.Getenv("PATH"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Symlink(self, filepath.Join(dir, "go"))
}

// realGo names the variable that holds the path of the real go.
const realGo = "MUTATE_GO"

// coverage runs go. A profile that it writes is made to cover whole files. gremlins mutates only
// what is covered, and a profile consists of blocks of statements. So it would never mutate the
// conditions of a switch or the values of constants. In packages of which every statement is
// covered, everything is.
func coverage(args []string) int {
	command := exec.Command(os.Getenv(realGo), args...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return 1
	}
	at := slices.Index(args, "-coverprofile")
	if at < 0 {
		return 0
	}
	raw, err := os.ReadFile(args[at+1])
	if err != nil {
		return 1
	}
	whole := regexp.MustCompile(`(?m)^(\S+\.go):.*$`).ReplaceAllString(string(raw), "$1:1.1,99999.1 1 1")
	lines := strings.SplitAfter(whole, "\n")
	if err := os.WriteFile(args[at+1], []byte(strings.Join(slices.Compact(lines), "")), 0o600); err != nil {
		return 1
	}
	return 0
}

// mutant is one change of the sources.
type mutant struct{ what, status string }

// unleash runs gremlins on a package of the module, or on one file of it.
func unleash(module, name, dir string) ([]mutant, error) {
	report := filepath.Join(dir, filepath.Base(name)+".json")
	others, err := othersThan(module, name)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".go") {
		name = filepath.Dir(name)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	gremlins := filepath.Join(filepath.Dir(self), "gremlins")
	command := exec.Command(gremlins, "unleash", "./"+name, "--silent", "--workers=1", "--timeout-coefficient=6",
		"--invert-logical", "--invert-loopctrl", "--invert-assignments", "--output="+report)
	command.Args = append(command.Args, others...)
	command.Dir, command.Stdout, command.Stderr = module, os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(report)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it reports nothing where it found nothing to mutate
	}
	if err != nil {
		return nil, err
	}
	var result struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
				Line   int    `json:"line"`
			} `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("read what gremlins reports: %w", err)
	}
	var found []mutant
	for _, file := range result.Files {
		path := name + "/" + filepath.Base(file.Name)
		source, err := os.ReadFile(filepath.Join(module, path))
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range file.Mutations {
			what := fmt.Sprintf("%s | %s | %s", path, m.Type, strings.TrimSpace(lines[m.Line-1]))
			found = append(found, mutant{what, m.Status})
		}
	}
	return found, nil
}

// othersThan are the arguments that keep gremlins from all files of a package but the one that name
// is of; none, where name is a package.
func othersThan(module, name string) ([]string, error) {
	if !strings.HasSuffix(name, ".go") {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(module, name)); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(module, filepath.Dir(name), "*.go"))
	if err != nil {
		return nil, err
	}
	var arguments []string
	for _, file := range files {
		if base := filepath.Base(file); base != filepath.Base(name) {
			arguments = append(arguments, "--exclude-files=(^|/)"+regexp.QuoteMeta(base)+"$")
		}
	}
	return arguments, nil
}

// judge prints the score of a package. A mutant under which the tests do not end counts as killed:
// the tests notice it.
func judge(name string, found []mutant, equivalent map[string]int) error {
	counts := map[string]int{}
	var errs []error
	for _, m := range found {
		counts[m.status]++
		if m.status != "LIVED" && m.status != "NOT COVERED" {
			continue
		}
		if equivalent[m.what] == 0 {
			errs = append(errs, fmt.Errorf("survives, and survivors.txt does not say why: %s", m.what))
			continue
		}
		if equivalent[m.what]--; equivalent[m.what] == 0 {
			delete(equivalent, m.what)
		}
	}
	killed := counts["KILLED"] + counts["TIMED OUT"]
	total := killed + counts["LIVED"] + counts["NOT COVERED"]
	if total == 0 {
		return fmt.Errorf("%s: gremlins found nothing to mutate", name)
	}
	score := float64(killed) / float64(total)
	fmt.Printf("%-12s %3d mutants, %3d killed (%d of them by a test that does not end), %2d survive: %.1f %%\n",
		name, total, killed, counts["TIMED OUT"], total-killed, 100*score)
	if isPackage := !strings.HasSuffix(name, ".go"); isPackage && score < least {
		errs = append(errs, fmt.Errorf("%s: %.1f %% of the mutants are killed, at least %.0f %% have to be", name, 100*score, 100*least))
	}
	return errors.Join(errs...)
}

// readSurvivors reads lines of the form "file | mutation | source line | why" and counts each of
// them.
func readSurvivors(path string) (map[string]int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	listed := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " | ")
		if at < 0 || strings.Count(line[:at], " | ") < 2 {
			return nil, fmt.Errorf("%s: not of the form file | mutation | source line | why: %s", path, line)
		}
		listed[line[:at]]++
	}
	return listed, nil
}
