package fences

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the manager may do is spelled out: a wildcard would also grant what does not exist yet.
func TestNoWildcardInRBAC(t *testing.T) {
	manifests, err := filepath.Glob("../../deploy/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roles := 0
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "kind: ClusterRole\n") {
			roles++
		}
		for i, line := range strings.Split(string(text), "\n") {
			if entry := strings.Trim(line, ` -"'`); entry == "*" {
				t.Errorf("%s:%d grants a wildcard: name what is needed", path, i+1)
			}
		}
	}
	if roles == 0 {
		t.Error("there is no ClusterRole in deploy: this test looks in the wrong place")
	}
}
