// Package messages bounds the texts of others that conditions and Events repeat. It is pure.
package messages

import (
	"strings"
	"unicode"
)

// OneLine is text as valid UTF-8 on one line, of at most limit bytes. What does not print, such as
// a control character or one that turns the direction of writing, becomes a blank: conditions and
// logs are read in terminals.
func OneLine(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
	}
	return strings.TrimSpace(text)
}

// maxNote is how many bytes of an Event's note the API server accepts. Source: k8s.io/kubernetes,
// pkg/apis/core/validation/events.go, NoteLengthLimit.
const maxNote = 1024

// EventNote is as much of a text as fits into an Event, on one line.
func EventNote(text string) string { return OneLine(text, maxNote) }
