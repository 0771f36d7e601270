package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const top = "../.."

// block is a run of commands in a page.
type block struct {
	page string
	line int
	// commands are what a reader types.
	commands string
}

// first is the first line of a block, by which tests name it.
func (b block) first() string {
	line, _, _ := strings.Cut(b.commands, "\n")
	return line
}

var fenced = regexp.MustCompile("(?s)\n( *)```(?:console|sh)\n(.*?)\n *```\n")

// blocks are all of the documentation.
func blocks(t *testing.T) []block {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, path := range append(pages, filepath.Join(top, "README.md")) {
		page, err := filepath.Rel(top, path)
		if err != nil {
			t.Fatal(err)
		}
		text := read(t, path)
		for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
			indent, body := text[at[2]:at[3]], text[at[4]:at[5]]
			body = strings.ReplaceAll("\n"+body, "\n"+indent, "\n")[1:]
			all = append(all, block{page: page, line: strings.Count(text[:at[4]], "\n"), commands: typed(body)})
		}
	}
	return all
}

// typed leaves out of a session what the commands have printed.
func typed(session string) string {
	if !strings.HasPrefix(session, "$ ") {
		return session
	}
	var commands []string
	for line := range strings.SplitSeq(session, "\n") {
		if command, isTyped := strings.CutPrefix(line, "$ "); isTyped {
			commands = append(commands, command)
		}
	}
	return strings.Join(commands, "\n")
}

// commandsOf returns the block of a page whose first line begins so.
func commandsOf(t *testing.T, page, first string) string {
	t.Helper()
	for _, b := range blocks(t) {
		if b.page == page && strings.HasPrefix(b.first(), first) {
			return b.commands
		}
	}
	t.Fatalf("%s has no commands that begin with %q", page, first)
	return ""
}

// patience is how long the commands of one reader may take. To compile a release for every platform
// from nothing can take more than 20 minutes on two busy cores.
const patience = 40 * time.Minute

// follow runs commands in a folder and returns what they print. Whatever they leave running is
// ended.
func follow(t *testing.T, folder, commands string, environment ...string) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(top, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	// A file, since what is left running would keep a pipe open.
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-e", "-c", commands)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Dir, shell.Stdout, shell.Stderr = folder, output, output
	// A make around this test has nothing to say to one inside.
	shell.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "PATH="+bin+":"+filepath.Join(bin, "tools")+":"+os.Getenv("PATH"))
	shell.Env = append(shell.Env, environment...)
	err = shell.Run()
	if shell.Process != nil {
		endGroup(t, shell.Process.Pid)
	}
	printed := read(t, output.Name())
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	return printed
}

// endGroup ends a group of processes, and waits for that.
func endGroup(t *testing.T, group int) {
	t.Helper()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = syscall.Kill(-group, signal)
		// The test's own context may have ended.
		err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH), nil
		})
		if err == nil {
			return
		}
	}
	t.Errorf("process group %d does not end", group)
}

// step is a block, or commands of the test's own around blocks.
type step struct {
	page, first string
	// own are run in the place of a block.
	own string
	// with replaces what stands for a reader's own values.
	with map[string]string
	// background says that the block is for a terminal of its own.
	background bool
}

// do returns the step of a block.
func do(page, first string, with ...string) step {
	s := step{page: page, first: first, with: map[string]string{}}
	for i := 0; i < len(with); i += 2 {
		s.with[with[i]] = with[i+1]
	}
	return s
}

// script returns what a shell runs for steps.
func script(t *testing.T, steps []step) string {
	t.Helper()
	var b strings.Builder
	for _, s := range steps {
		commands := s.own
		if commands == "" {
			commands = commandsOf(t, s.page, s.first)
			fmt.Fprintf(&b, "echo '== %s: %s'\n", s.page, strings.ReplaceAll(s.first, "'", ""))
		}
		for from, to := range s.with {
			if !strings.Contains(commands, from) {
				t.Errorf("%s: %s: nothing to replace: %s", s.page, s.first, from)
			}
			commands = strings.ReplaceAll(commands, from, to)
		}
		if s.background {
			commands = "{ " + commands + "\n} &"
		}
		fmt.Fprintln(&b, commands)
	}
	return b.String()
}
