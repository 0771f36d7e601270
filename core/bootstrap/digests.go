package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DigestsKey is the key of a ConfigMap of digests.
const DigestsKey = "sha256sums"

// ReadDigests reads lines as sha256sum writes them: "SHA256  NAME", or "SHA256 *NAME". It leaves
// out any other line.
func ReadDigests(list string) map[string]string {
	digests := map[string]string{}
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) == 2 {
			digests[strings.TrimPrefix(fields[1], "*")] = fields[0]
		}
	}
	return digests
}

// WriteDigests writes lines that ReadDigests reads, sorted by name.
func WriteDigests(digests map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(&b, "%s  %s\n", digests[name], name)
	}
	return b.String()
}

// IsDigest says whether the text is a SHA-256 sum, as Config.Digests has them.
func IsDigest(text string) bool { return digestPattern.MatchString(text) }
