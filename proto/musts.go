// Package protofiles holds the sources of the driver contract, so that programs can show its rules.
package protofiles

import (
	"embed"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed millwright/driver millwright/handshake
var sources embed.FS

// Must is a numbered rule of the contract: a MUST or MUST NOT in a comment, as in "MUST [M42]".
type Must struct {
	// Number is 42 for [M42]. It never changes its meaning, and is not used again.
	Number int
	// File is where it stands, below proto/.
	File string
	// Sentence is the sentence in which it stands.
	Sentence string
}

var (
	numbered = regexp.MustCompile(`MUST(?: NOT)? \[M(\d+)\]`)
	// sentences end at a full stop that a space follows, or the comment's end.
	sentences = regexp.MustCompile(`[^.]*(?:\.[^ ][^.]*)*(?:\. |\.$|$)`)
)

// Musts returns the rules of the contract, in the order of their numbers.
func Musts() []Must {
	var found []Must
	for path, comment := range comments() {
		for _, sentence := range sentences.FindAllString(comment, -1) {
			for _, match := range numbered.FindAllStringSubmatch(sentence, -1) {
				number, _ := strconv.Atoi(match[1]) // it is digits
				found = append(found, Must{Number: number, File: path, Sentence: strings.TrimSpace(sentence)})
			}
		}
	}
	slices.SortFunc(found, func(a, b Must) int { return a.Number - b.Number })
	return found
}

// comments yields each comment of the contract on one line, with the file in which it stands.
func comments() func(yield func(path, comment string) bool) {
	return func(yield func(path, comment string) bool) {
		_ = fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			raw, err := sources.ReadFile(path)
			if err != nil {
				return err
			}
			var comment []string
			for line := range strings.Lines(string(raw) + "\n") {
				text, is := strings.CutPrefix(strings.TrimSpace(line), "//")
				if is {
					comment = append(comment, strings.TrimSpace(text))
					continue
				}
				if len(comment) > 0 && !yield(path, strings.Join(comment, " ")) {
					return fs.SkipAll
				}
				comment = nil
			}
			return nil
		})
	}
}
