package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// note is what is written down of a running process. Its pid alone proves nothing, since pids are
// used again.
type note struct {
	Name     string   `json:"name"`
	Pid      int      `json:"pid"`
	Identity identity `json:"identity"`
	// Temp is the folder of its temporary files.
	Temp string `json:"temp,omitempty"`
}

// tempPrefix is how the names of folders for temporary files begin. Sockets lie in such a folder:
// its path has to be short.
const tempPrefix = "mw-run-"

// identity tells a process from every other one that has had or will have its pid. It is
// comparable.
type identity struct {
	// Boot is the kernel's id of this boot, and StartTicks the start of the process since then.
	Boot       string `json:"boot"`
	StartTicks string `json:"startTicks"`
	// Executable is the file it runs.
	Executable string `json:"executable"`
}

// writeNote notes a process that has just been started. Where identities cannot be had, it notes
// nothing.
func writeNote(path, name string, pid int, temp string) error {
	id, err := identify(pid)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrNotExist) {
		return nil // Nothing to prove, or gone already; its end is being waited for.
	}
	if err != nil {
		return fmt.Errorf("identify process: %w", err)
	}
	data, err := json.Marshal(note{Name: name, Pid: pid, Identity: id, Temp: temp})
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	// A half-written note must never be read: the old one or the new one is there.
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write note: %w", err)
	}
	return os.Rename(path+".new", path)
}

// endLeftovers kills the processes that are noted in dir and proven to be the noted ones. It
// removes their temporary files and the notes.
func endLeftovers(dir string, log *slog.Logger) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return fmt.Errorf("list notes: %w", err)
	}
	for _, path := range paths {
		if err := endLeftover(path, log); err != nil {
			return fmt.Errorf("end leftover process of %s: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove note: %w", err)
		}
	}
	return nil
}

func endLeftover(path string, log *slog.Logger) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var n note
	if json.Unmarshal(data, &n) != nil || n.Pid <= 1 {
		log.Warn("Note of a process is unreadable and is dropped", "note", path)
		return nil //nolint:nilerr // it proves nothing, so that nothing can be ended
	}
	if err := endNoted(n, log); err != nil {
		return err
	}
	return removeTemp(n)
}

// removeTemp removes the temporary files of a process. A note of an earlier version names none.
func removeTemp(n note) error {
	if !strings.HasPrefix(filepath.Base(n.Temp), tempPrefix) {
		return nil
	}
	return os.RemoveAll(n.Temp)
}

// endNoted kills the process that a note names, where it is proven to be that one.
func endNoted(n note, log *slog.Logger) error {
	// On Linux the handle pins the process (pidfd): what is identified below is what gets killed.
	child, err := os.FindProcess(n.Pid)
	if err != nil {
		return err
	}
	defer func() { _ = child.Release() }()
	if id, err := identify(n.Pid); err != nil || id != n.Identity {
		return nil
	}
	log.Warn("Ending a process that an earlier run left behind", "process", n.Name, "pid", n.Pid)
	if err := child.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return waitGone(n)
}

// goneTimeout bounds the wait for a killed process. The kernel needs milliseconds, unless it sits
// in a broken disk.
const goneTimeout = 10 * time.Second

// waitGone returns when a process that is not our child, and so cannot be waited for, is no more.
func waitGone(n note) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(goneTimeout); time.Now().Before(deadline); <-ticker.C {
		if id, err := identify(n.Pid); err != nil || id != n.Identity {
			return nil
		}
	}
	return fmt.Errorf("process %d is still there %s after SIGKILL", n.Pid, goneTimeout)
}
