package fences

import (
	"bufio"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// providerNames finds clouds in a line of source. Short names must stand alone:
// "nova" is also in "innovation".
var providerNames = regexp.MustCompile(`(?i)openstack|vsphere|hetzner|proxmox|digitalocean|kubevirt|equinix|` +
	`\b(aws|ec2|azure|gce|gcp|nova|neutron|keystone|glance|libvirt|nutanix|alibaba)\b|\bfake|fake(cloud|driver)`)

// TestCoreNamesNoProvider keeps clouds out of core in every form, comments
// included: what differs between them are declared capabilities.
func TestCoreNamesNoProvider(t *testing.T) {
	files := 0
	sources(t, "core", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		files++
		eachLine(t, path, func(n int, line string) {
			if name := providerNames.FindString(line); name != "" {
				t.Errorf("%s:%d names %q; ask for a capability, and take names from the configuration", path, n, name)
			}
		})
	})
	if files == 0 {
		t.Error("core has no sources: does the test look in the right place?")
	}
}

// TestProviderNames shows what the expression takes for a cloud.
func TestProviderNames(t *testing.T) {
	for line, want := range map[string]bool{
		`case "openstack":`:                true,
		"func newOpenStackQuirk() quirk {": true,
		"// Nova answers late.":            true,
		"// an innovation":                 false,
		"import \"x/providers/fake\"":      true,
		"type fakeDriver struct{}":         true,
		"newFakeCloud()":                   true,
		"the provider of the machine":      false,
	} {
		if got := providerNames.MatchString(line); got != want {
			t.Errorf("%q names a provider: %t, want %t", line, got, want)
		}
	}
}

// meaningless are names that say nothing about what a package is for.
var meaningless = []string{"base", "common", "generic", "helper", "helpers", "lib", "misc", "shared", "types", "util", "utils"}

// TestPackageNames wants nouns of the domain, and files that say more than their
// package's name does.
func TestPackageNames(t *testing.T) {
	sources(t, ".", func(path string) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		pkg := strings.TrimSuffix(f.Name.Name, "_test")
		if slices.Contains(meaningless, pkg) {
			t.Errorf("%s: package %s says nothing; name it after what it is in the domain", path, pkg)
		}
		// A command's package has no name of its own.
		if file := filepath.Base(path); file == pkg+".go" && pkg != "main" {
			t.Errorf("%s is named after its package; name it after what it holds", path)
		}
	})
}

// sources calls visit with each Go file below a folder that somebody wrote.
func sources(t *testing.T, folder string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(top, folder), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && skipped(d.Name()) {
			return filepath.SkipDir
		}
		name := d.Name()
		generated := strings.HasSuffix(name, ".pb.go") || strings.HasPrefix(name, "zz_generated.")
		if filepath.Ext(name) == ".go" && !generated {
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eachLine calls visit with each line of the file, counted from 1.
func eachLine(t *testing.T, path string, visit func(n int, line string)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		visit(n, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
