package vm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newFolder returns that of a VM, with files in it.
func newFolder(t *testing.T, files map[string]string) Folder {
	t.Helper()
	f := newStore(t).Folder("uid")
	if err := os.Mkdir(string(f), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(f.file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestPhase(t *testing.T) {
	for name, tc := range map[string]struct {
		locked bool
		files  map[string]string
		want   Phase
	}{
		"nothing was begun":      {want: Leftover},
		"a start has failed":     {files: map[string]string{consoleFile: "", logFile: "no memory"}, want: Leftover},
		"killed before it spoke": {files: map[string]string{consoleFile: "", pidFile: "1"}, want: Leftover},
		"its disk is made":       {locked: true, want: Preparing},
		"its process begins":     {locked: true, files: map[string]string{consoleFile: ""}, want: Preparing},
		"its process has begun":  {locked: true, files: map[string]string{pidFile: "1"}, want: Starting},
		"it spoke":               {locked: true, files: map[string]string{pidFile: "1", consoleFile: "SeaBIOS"}, want: Running},
		"it ended by itself":     {files: map[string]string{consoleFile: "SeaBIOS"}, want: PoweredOff},
		"its process was ended":  {files: map[string]string{pidFile: "1", consoleFile: "SeaBIOS"}, want: Killed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, tc.files)
			if tc.locked {
				lock, err := acquire(f.file(lockFile))
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Close()
			}
			if got, err := f.Phase(); err != nil || got != tc.want {
				t.Errorf("phase %d, want %d (%v)", got, tc.want, err)
			}
		})
	}
}

// A pid that has become somebody else's is not killed: whoever has it does not hold the VM's lock.
func TestNobodyElseIsKilled(t *testing.T) {
	stranger := exec.CommandContext(t.Context(), "sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	f := newFolder(t, map[string]string{pidFile: strconv.Itoa(stranger.Process.Pid), lockFile: ""})
	if err := f.Kill(); err != nil {
		t.Error(err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger was killed: %v", err)
	}
	if err := stranger.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = stranger.Wait() // it was killed
}

// The lock belongs to whoever inherits it, and goes with the last of them.
func TestLockIsInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	heir := exec.CommandContext(t.Context(), "cat")
	heir.ExtraFiles = []*os.File{lock}
	input, err := heir.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := heir.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if held, err := isHeld(path); !held || err != nil {
		t.Errorf("the heir does not hold it (%v)", err)
	}
	if other, err := acquire(path); other != nil || !errors.Is(err, ErrBusy) {
		t.Errorf("it was taken twice (%v)", err)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := heir.Wait(); err != nil {
		t.Fatal(err)
	}
	if held, err := isHeld(path); held || err != nil {
		t.Errorf("it is held by nobody (%v)", err)
	}
}

// Two drivers on one folder do not change it at once, and give the host one id.
func TestTwoDriversShareAHost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	ids := make([]string, 8)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() {
			s, err := OpenStore(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.HostID()
		})
	}
	wait.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("the host's ids are %q", ids)
		}
	}
	first, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	end, err := first.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Begin(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("the other driver has its turn at once (%v)", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := first.Begin(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose caller is gone has its turn (%v)", err)
	}
	end()
	if end, err = second.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
}

// A disk that is not mounted is no host without VMs.
func TestStateNeedsItsParent(t *testing.T) {
	if _, err := OpenStore(filepath.Join(t.TempDir(), "not-mounted", "state")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is opened (%v)", err)
	}
}

// A record that cannot be read is an error: a list without its VM would have core replace it.
func TestListIsCompleteOrAnError(t *testing.T) {
	s := newStore(t)
	f := s.Folder("uid")
	if err := os.Mkdir(string(f), 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := s.VMs(); err != nil || len(all) != 0 {
		t.Errorf("a folder without a record is %v (%v)", all, err)
	}
	if err := os.WriteFile(f.file(recordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VMs(); err == nil {
		t.Error("half a record is none")
	}
}
