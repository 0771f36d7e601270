// Package protofiles holds the sources of the driver contract, so that programs can show its rules.
package protofiles

import (
	"embed"
	"io/fs"
	"iter"
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
	// Subject is what its comment stands on: a message, a service or an enumeration, or one of its
	// fields, calls or values, as in CreateMachineRequest.user_data.
	Subject string
	// Sentence is the sentence in which it stands.
	Sentence string
}

var (
	numbered = regexp.MustCompile(`MUST(?: NOT)? \[M(\d+)\]`)
	// sentences end at a full stop that a space follows, or the comment's end.
	sentences = regexp.MustCompile(`[^.]*(?:\.[^ ][^.]*)*(?:\. |\.$|$)`)
	// block is the first line of what has fields, calls or values; member is the line of one.
	block  = regexp.MustCompile(`^(?:message|service|enum) (\w+)`)
	member = regexp.MustCompile(`^rpc (\w+)|(\w+) = \d`)
)

// Musts returns the rules of the contract, in the order of their numbers.
func Musts() []Must {
	var found []Must
	for c := range comments() {
		for _, sentence := range sentences.FindAllString(c.text, -1) {
			for _, match := range numbered.FindAllStringSubmatch(sentence, -1) {
				number, _ := strconv.Atoi(match[1]) // it is digits
				found = append(found, Must{Number: number, File: c.file, Subject: c.subject, Sentence: strings.TrimSpace(sentence)})
			}
		}
	}
	slices.SortFunc(found, func(a, b Must) int { return a.Number - b.Number })
	return found
}

// comment is one of the contract, on one line. subject is empty where it stands on nothing that has
// a name.
type comment struct{ file, subject, text string }

// comments yields each comment of the contract.
func comments() iter.Seq[comment] {
	return func(yield func(comment) bool) {
		_ = fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			raw, err := sources.ReadFile(path)
			if err != nil {
				return err
			}
			for c := range commentsIn(string(raw)) {
				c.file = path
				if !yield(c) {
					return fs.SkipAll
				}
			}
			return nil
		})
	}
}

// commentsIn yields the comments of a source. Its messages have no messages within.
func commentsIn(source string) iter.Seq[comment] {
	return func(yield func(comment) bool) {
		var text []string
		within := ""
		for line := range strings.Lines(source + "\n") {
			line = strings.TrimSpace(line)
			if words, is := strings.CutPrefix(line, "//"); is {
				text = append(text, strings.TrimSpace(words))
				continue
			}
			subject := ""
			if begins := block.FindStringSubmatch(line); begins != nil {
				within, subject = begins[1], begins[1]
			} else if has := member.FindStringSubmatch(line); has != nil {
				subject = within + "." + has[1] + has[2]
			}
			if len(text) > 0 && !yield(comment{subject: subject, text: strings.Join(text, " ")}) {
				return
			}
			text = nil
		}
	}
}
