package suite

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a process may take to end after the step that started it.
const grace = 5 * time.Second

// adoptOrphans has every process whose parent ends become a child of this one, as of init else. So
// this process knows what a step has left running, whatever that has done to its group, its session
// or its environment.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

// endOrphans ends the children that this process has adopted and that do not end by themselves. It
// returns a line for each: its pid and its command. Call it while no command of this process runs.
func endOrphans() ([]string, error) {
	began := time.Now()
	ended := map[int]string{}
	for {
		pids, err := children()
		if err != nil || len(pids) == 0 {
			return slices.Sorted(maps.Values(ended)), err
		}
		switch waited := time.Since(began); {
		case waited > 3*grace:
			return slices.Sorted(maps.Values(ended)), fmt.Errorf("these processes do not end when they are killed: %v", pids)
		case waited > grace:
			end(pids, ended) // what these have started becomes a child in turn
		}
		<-time.After(grace / 50)
	}
}

// children returns the pids of this process's children, and reaps those that have ended.
func children() ([]int, error) {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			break
		}
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("read the children of this process: %w", err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// end kills processes, and adds a line to ended for each that is not there yet.
func end(pids []int, ended map[int]string) {
	for _, pid := range pids {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		if ended[pid] == "" {
			ended[pid] = fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '}))
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
