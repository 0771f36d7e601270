package arena

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// finder reads on in all logs for what must not be there.
type finder struct {
	dirs []string
	// wanted are what to look for, by what it is.
	wanted  map[string]string
	offsets map[string]int64
}

func newFinder(secret string, dirs ...string) *finder {
	raw := []byte(secret)
	return &finder{dirs: dirs, offsets: map[string]int64{}, wanted: map[string]string{
		"WARNING: DATA RACE":    "a data race",
		"panic: ":               "a panic",
		"fatal error: ":         "a panic",
		secret:                  judge.Canary,
		hex.EncodeToString(raw): judge.Canary,
		// In the middle of a longer text base64 has one of three forms; two of them hold these
		// parts.
		strings.TrimRight(base64.StdEncoding.EncodeToString(raw[:len(raw)/3*3]), "="): judge.Canary,
	}}
}

// find returns what was written since the last call and must not have been.
func (f *finder) find() ([]judge.Find, error) {
	var paths []string
	for _, dir := range f.dirs {
		some, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil {
			return nil, fmt.Errorf("list the logs: %w", err)
		}
		paths = append(paths, some...)
	}
	var found []judge.Find
	for _, path := range paths {
		some, err := f.read(path)
		if err != nil {
			return nil, fmt.Errorf("read a log: %w", err)
		}
		found = append(found, some...)
	}
	return found, nil
}

func (f *finder) read(path string) (found []judge.Find, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(f.offsets[path], io.SeekStart); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(path), ".log")
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		f.offsets[path] += int64(len(line))
		for text, what := range f.wanted {
			// Kubernetes' own processes may say what they like of themselves.
			if strings.Contains(line, text) && (what == judge.Canary || ours[name]) {
				found = append(found, judge.Find{Process: name, What: what, Line: strings.TrimSpace(line[:min(len(line), 500)])})
			}
		}
	}
}

// ours are the processes that must not crash.
var ours = map[string]bool{"manager": true, "driver": true, "cloud": true, "kubelets": true}
