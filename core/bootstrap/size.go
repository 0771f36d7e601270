package bootstrap

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// MaxUserDataBytes is the most that any cloud is given.
const MaxUserDataBytes = 64 << 10

// fit returns the user data, compressed if it would be too long. If it is too long even then, the
// error names the largest files.
func fit(data []byte, limit int, system clusterv1alpha1.OperatingSystem, all contents) ([]byte, error) {
	limit = boundOf(limit)
	if len(data) <= limit {
		return data, nil
	}
	short, err := shorten(data, system)
	if err != nil {
		return nil, err
	}
	if len(short) > limit {
		return nil, fmt.Errorf("the user data has %d bytes even when compressed, at most %d are possible; the largest files are %s: "+
			"use fewer files, labels or sshPublicKeys, or an image that has them", len(short), limit, largest(all))
	}
	return short, nil
}

// boundOf is how long user data may be at most; see Config.MaxBytes.
func boundOf(limit int) int {
	if limit <= 0 || limit > MaxUserDataBytes {
		return MaxUserDataBytes
	}
	return limit
}

// shorten compresses user data in the way that the operating system reads.
func shorten(data []byte, system clusterv1alpha1.OperatingSystem) ([]byte, error) {
	short, err := compress(data)
	if err == nil && system == clusterv1alpha1.OperatingSystemFlatcar {
		short, err = ignitionStub(short)
	}
	if err != nil {
		return nil, fmt.Errorf("compress the user data: %w", err)
	}
	return short, nil
}

// compress compresses without a time stamp: the same data give the same bytes.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ignitionStub is a configuration that Ignition replaces by the compressed one in it. Not all
// platforms hand Ignition user data that is itself compressed.
func ignitionStub(compressed []byte) ([]byte, error) {
	source := "data:;base64," + base64.StdEncoding.EncodeToString(compressed)
	return json.Marshal(map[string]any{"ignition": map[string]any{
		"version": ignitionVersion,
		"config":  map[string]any{"replace": map[string]any{"source": source, "compression": "gzip"}},
	}})
}

// largest names the three largest files with their sizes.
func largest(all contents) string {
	const shown = 3
	files := slices.SortedStableFunc(slices.Values(all.files), func(a, b File) int { return cmp.Compare(len(b.Content), len(a.Content)) })
	var names []string
	for _, f := range files[:min(shown, len(files))] {
		names = append(names, fmt.Sprintf("%s (%d bytes)", f.Path, len(f.Content)))
	}
	return strings.Join(names, ", ")
}
