package driver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// processes returns the pids of QEMUs of a VM.
func processes(t *testing.T, uid string) []int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(bytes.Split(line, []byte{0}), func(word []byte) bool { return string(word) == "millwright-"+uid }) {
			continue // it ended while we looked, or is another
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
