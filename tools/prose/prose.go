package main

import (
	"go/scanner"
	"go/token"
	"path"
	"strings"
)

// isLeftOut says whether nobody writes the file by hand, or it is not ours.
func isLeftOut(name string) bool {
	base := path.Base(name)
	switch {
	case strings.Contains("/"+name, "/testdata/"), base == "LICENSE":
		return true
	case strings.HasSuffix(base, ".pb.go"), strings.HasPrefix(base, "zz_generated"):
		return true
	}
	return strings.HasPrefix(name, "deploy/crds/") || strings.Contains(name, "/crds/") ||
		name == "deploy/rbac/role.yaml"
}

// prose returns what of a file is prose: each line is where it was, and lines of code are empty.
// It says false for a file that has none.
func prose(name, text string) (string, bool) {
	if isLeftOut(name) {
		return "", false
	}
	switch path.Ext(name) {
	case ".md":
		return markdown(text), true
	case ".go":
		return goComments(text), true
	case ".proto", ".ts":
		return lineComments(text, "//"), true
	case ".yaml", ".yml", ".sh", ".py":
		return lineComments(text, "#"), true
	}
	if path.Base(name) == "Makefile" || name == ".ci/run" {
		return lineComments(text, "#"), true
	}
	return "", false
}

// markdown drops fenced code.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || fenced {
			lines[i] = ""
		}
		fenced = fenced != fence
	}
	return strings.Join(lines, "\n")
}

// goComments keeps lines that are comment alone. A tab counts as four columns.
func goComments(text string) string {
	lines := strings.Split(text, "\n")
	kept := make([]string, len(lines))
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var tokens scanner.Scanner
	tokens.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		at, kind, comment := tokens.Scan()
		if kind == token.EOF {
			return strings.Join(kept, "\n")
		}
		if kind == token.COMMENT && strings.HasPrefix(comment, "//") {
			n := file.Line(at) - 1
			kept[n] = lineComment(lines[n], "//")
		}
	}
}

// lineComments keeps lines that start with the mark.
func lineComments(text, mark string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = lineComment(line, mark)
	}
	return strings.Join(lines, "\n")
}

// lineComment returns the line with blanks for its mark, and nothing for code and directives.
func lineComment(line, mark string) string {
	rest := strings.TrimLeft(line, " \t")
	text, isComment := strings.CutPrefix(rest, mark)
	if !isComment || !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\t") ||
		strings.HasPrefix(strings.TrimSpace(text), "+") {
		return ""
	}
	indent := strings.ReplaceAll(line[:len(line)-len(rest)], "\t", "    ")
	return indent + strings.Repeat(" ", len(mark)) + text
}
