// Prose holds comments and documents to plain English. It gives Vale their prose, and fails where
// a file has more findings than the committed list allows, or fewer: the list only shrinks.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// list is where the number of findings of each file is committed.
const list = "tools/prose/findings.txt"

// finding is one alert of Vale.
type finding struct {
	Line    int
	Check   string
	Message string
}

func main() {
	vale := flag.String("vale", "bin/tools/vale", "Vale's executable")
	update := flag.Bool("update", false, "lower the numbers of the list")
	raise := flag.Bool("raise", false, "let -update raise numbers, too")
	flag.Parse()
	if err := run(*vale, *update, *raise); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(vale string, update, raise bool) error {
	alerts, err := check(vale)
	if err != nil {
		return err
	}
	found := map[string]int{}
	for name, of := range alerts {
		found[name] = len(of)
		for _, a := range of {
			// Go's comments had none when the list began.
			if strings.HasSuffix(name, ".go") && a.Check == "Millwright.Columns" {
				return fmt.Errorf("%s:%d: %s", name, a.Line, a.Message)
			}
		}
	}
	text, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listed, err := parse(string(text))
	if err != nil {
		return err
	}
	grown, shrunk := compare(listed, found)
	if len(grown) > 0 && !raise {
		for _, name := range grown {
			fmt.Printf("%s: %d findings, %d allowed\n", name, found[name], listed[name])
			for _, a := range alerts[name] {
				fmt.Printf("  %s:%d %s: %s\n", name, a.Line, a.Check, a.Message)
			}
		}
		return fmt.Errorf("%d files have more findings than %s allows", len(grown), list)
	}
	if update {
		return os.WriteFile(list, []byte(format(found)), 0o644)
	}
	for _, name := range shrunk {
		fmt.Printf("%s: %d findings, %d listed\n", name, found[name], listed[name])
	}
	if len(shrunk) > 0 {
		return fmt.Errorf("%d files have fewer findings: run make prose-update", len(shrunk))
	}
	return nil
}

// check returns what Vale finds in each file that git knows or would add.
func check(vale string) (map[string][]finding, error) {
	names, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	dir, err := os.MkdirTemp("", "prose-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := extract(dir, name); err != nil {
			return nil, err
		}
	}
	return runVale(vale, dir)
}

// extract writes the prose of a file below dir.
func extract(dir, name string) error {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil // deleted, or a link to what is read anyway
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, has := prose(name, string(source))
	if !has || strings.TrimSpace(text) == "" {
		return nil
	}
	to := filepath.Join(dir, name+".txt")
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(text), 0o644)
}

// runVale returns the findings below dir, by the paths of their sources.
func runVale(vale, dir string) (map[string][]finding, error) {
	vale, err := filepath.Abs(vale)
	if err != nil {
		return nil, err
	}
	config, err := filepath.Abs("tools/prose/vale.ini")
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(vale, "--config="+config, "--output=JSON", "--no-exit", ".")
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run vale: %w\n%s%s", err, out, stderr.String())
	}
	var alerts map[string][]finding
	if err := json.Unmarshal(out, &alerts); err != nil {
		return nil, fmt.Errorf("read vale's answer: %w", err)
	}
	bySource := map[string][]finding{}
	for name, of := range alerts {
		if rel, err := filepath.Rel(dir, name); filepath.IsAbs(name) && err == nil {
			name = rel
		}
		bySource[strings.TrimSuffix(filepath.ToSlash(filepath.Clean(name)), ".txt")] = of
	}
	return bySource, nil
}
