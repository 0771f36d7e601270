package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millwright-dev/millwright/test/tier"
)

// `millwright dev` says when it is ready and ends all it started: on SIGTERM, and also when it is
// killed.
func TestOPS1_DevLeavesNothingBehind(t *testing.T) {
	tier.Long(t, "it starts three stacks")
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			takeTurn(t)
			dir := shortDir(t)
			dev := startDev(t, dir)
			if n := len(processesOf(t, dir)); n < 10 {
				t.Errorf("only %d processes carry the directory's name while dev runs", n)
			}
			if err := dev.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := dev.Wait()
			if signal != syscall.SIGKILL && err != nil {
				t.Errorf("dev ended with %v", err)
			}
			eventually(t, "all processes to end", func(context.Context) error {
				if left := processesOf(t, dir); len(left) > 0 {
					return fmt.Errorf("these are left: %v", left)
				}
				return nil
			})
		})
	}
}

// startDev starts `millwright dev` and waits for the line that says that it is ready.
func startDev(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	command := exec.Command(filepath.Join(binDir, "millwright"), "dev", "--dir", dir)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		_ = command.Wait()
		t.Fatalf("dev ended before it was ready: %v\n%s", err, log.String())
	}
	if want := "ready: KUBECONFIG=" + filepath.Join(dir, "kubeconfig") + "\n"; line != want {
		t.Errorf("dev says %q, want %q", line, want)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return command
}

// processesOf lists the processes whose command line names dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if line := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(line, dir) {
			found = append(found, line)
		}
	}
	return found
}

// shortDir is a directory in whose path sockets can lie.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// The demo ends well, and fails when a driver makes one VM too many.
func TestOPS1_Demo(t *testing.T) {
	t.Parallel()
	for _, cloud := range []string{"fake", "openstack"} {
		t.Run("on "+cloud, func(t *testing.T) {
			if cloud != "fake" {
				tier.Long(t, "one demo is enough")
			}
			out, err := demo(t, "--cloud="+cloud)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if want := "demo ok: created=12 deleted=12 left=0 lowest_available=6"; err != nil || lines[len(lines)-1] != want {
				t.Errorf("the demo ended with %v and the line %q, want %q\n%s", err, lines[len(lines)-1], want, out)
			}
		})
	}
	t.Run("with a driver that doubles a create", func(t *testing.T) {
		tier.Long(t, "one demo is enough")
		out, err := demo(t, "--driver=millwright-driver-fake-doubling")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(out, "12 Machines, but 13 VMs were created") {
			t.Errorf("the demo ended with %v, want it to fail and to say that there was one VM too many\n%s", err, out)
		}
	})
}

func demo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	takeTurn(t)
	dir := shortDir(t)
	out, err := exec.Command(filepath.Join(binDir, "millwright"), append([]string{"demo", "--dir", dir}, args...)...).CombinedOutput()
	return string(out), err
}
