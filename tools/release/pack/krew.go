package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Plugin is the archive of the plugin for one platform, such as linux/amd64.
type Plugin struct{ Platform, Path string }

// krew's words are those of https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
const krewHead = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: millwright
spec:
  version: %s
  homepage: %s
  shortDescription: Machines of Kubernetes, planned, followed and explained
  description: |
    Tells before a change of a MachineDeployment which machines it replaces, follows rollouts on the terminal and on a live page, tells the
    story of a Machine, and works with Millwright's manager and its drivers.
  platforms:
`

const krewPlatform = `  - selector:
      matchLabels:
        os: %s
        arch: %s
    uri: %s
    sha256: %s
    bin: %s
    files:
    - from: "*"
      to: "."
`

// Krew returns krew's manifest of the plugin, whose archives are to be had below that address.
func Krew(version, homepage, address string, plugins []Plugin) ([]byte, error) {
	var text strings.Builder
	fmt.Fprintf(&text, krewHead, version, homepage)
	for _, p := range plugins {
		sum, err := sumOf(p.Path)
		if err != nil {
			return nil, err
		}
		system, architecture, _ := strings.Cut(p.Platform, "/")
		fmt.Fprintf(&text, krewPlatform, system, architecture, address+"/"+filepath.Base(p.Path), sum, "kubectl-millwright"+Suffix(p.Platform))
	}
	return []byte(text.String()), nil
}

// Suffix is how executables of a platform end.
func Suffix(platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return ".exe"
	}
	return ""
}

// Checksums returns what `sha256sum --check` reads, of files of one folder.
func Checksums(paths []string) ([]byte, error) {
	sorted := slices.Sorted(slices.Values(paths))
	var text strings.Builder
	for _, path := range sorted {
		sum, err := sumOf(path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, filepath.Base(path))
	}
	return []byte(text.String()), nil
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
