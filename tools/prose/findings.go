package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parse reads lines of "COUNT PATH".
func parse(text string) (map[string]int, error) {
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		var count int
		var name string
		if _, err := fmt.Sscanf(line, "%d %s", &count, &name); err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		counts[name] = count
	}
	return counts, nil
}

// format is the opposite of parse. Its lines are sorted by path.
func format(counts map[string]int) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			fmt.Fprintf(&text, "%d %s\n", counts[name], name)
		}
	}
	return text.String()
}

// compare returns the paths with more findings than the list has, and those with fewer, sorted.
func compare(listed, found map[string]int) (grown, shrunk []string) {
	all := maps.Clone(listed)
	maps.Copy(all, found)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case found[name] > listed[name]:
			grown = append(grown, name)
		case found[name] < listed[name]:
			shrunk = append(shrunk, name)
		}
	}
	return grown, shrunk
}
