package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// namespaces is where `ip netns` notes the network namespaces that it makes.
const namespaces = "/run/netns"

// place is where a step may leave something behind.
type place struct {
	// temp is for its temporary files, and with them its sockets.
	temp string
	// before are the network namespaces that there were.
	before []string
}

// newPlace makes a folder for temporary files. Its path is short, as those of sockets in it are
// limited to some hundred bytes.
func newPlace() (place, error) {
	for n := range 1000 {
		temp := filepath.Join(os.TempDir(), fmt.Sprintf("m%d", n))
		err := os.Mkdir(temp, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return place{}, fmt.Errorf("make a folder for temporary files: %w", err)
		}
		return place{temp: temp, before: names(namespaces)}, nil
	}
	return place{}, fmt.Errorf("%s has a thousand folders m0 to m999: remove them", os.TempDir())
}

// left returns what a step has left behind, a line each: processes, temporary files and network
// namespaces. It ends the processes and removes the files.
func (p place) left() ([]string, error) {
	lines, err := endOrphans()
	for _, name := range names(p.temp) {
		lines = append(lines, "file: "+filepath.Join(p.temp, name))
	}
	for _, name := range names(namespaces) {
		if !slices.Contains(p.before, name) {
			lines = append(lines, "network namespace: "+name)
		}
	}
	return lines, errors.Join(err, os.RemoveAll(p.temp))
}

// names returns what a folder has; nothing where it is not there.
func names(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}
