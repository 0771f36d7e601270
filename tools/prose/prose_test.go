package main

import "testing"

func TestOnlyProseIsLeft(t *testing.T) {
	for name, test := range map[string]struct{ path, text, want string }{
		"a comment of Go":          {"a.go", "package a\n\n\t// Words.\n", "\n\n       Words.\n"},
		"a string is no comment":   {"a.go", "package a\nvar x = `\n// no\n`\n", "\n\n\n\n"},
		"code is others' to judge": {"a.go", "package a\nvar x = 1 // no\n", "\n\n"},
		"a directive":              {"a.go", "//go:build x\n// +kubebuilder:x\npackage a\n", "\n\n\n"},
		"a comment of YAML":        {"a.yaml", "# Words.\nkey: value\n", "  Words.\n\n"},
		"a comment of a shell":     {"a.sh", "#!/bin/sh\n# Words.\n", "\n  Words.\n"},
		"a comment of protobuf":    {"a.proto", "  // Words.\n  int32 a = 1;\n", "     Words.\n\n"},
		"fenced code":              {"a.md", "Words.\n```\ncode\n```\nWords.", "Words.\n\n\n\nWords."},
	} {
		if got, _ := prose(test.path, test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestGeneratedFilesAreLeftOut(t *testing.T) {
	for _, name := range []string{"LICENSE", "x/a.pb.go", "api/zz_generated.deepcopy.go", "x/testdata/a.md", "deploy/crds/a.yaml", "a.png"} {
		if _, has := prose(name, "# Words.\n"); has {
			t.Errorf("%s is read", name)
		}
	}
}
