package template

import (
	"errors"
	"fmt"
	"strings"
)

// quoteShell writes a value as words in single quotes, in which a shell reads nothing.
func quoteShell(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return quoteWord(v)
	case []string:
		words := make([]string, 0, len(v))
		for _, item := range v {
			word, err := quoteWord(item)
			if err != nil {
				return "", err
			}
			words = append(words, word)
		}
		return strings.Join(words, " "), nil
	}
	return plain(value)
}

func quoteWord(text string) (string, error) {
	if strings.ContainsRune(text, 0) {
		return "", errors.New("a value has a character that no shell takes")
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
}

// opaque are constructs within which it cannot be told what quotes mean.
var opaque = []string{"`", "<<", "((", "[[", "$[", "$'", `$"`, "${"}

// checkShell looks for the markers: each must be a word by itself, outside of quotes and comments.
// A script that has values must do without what makes that hard to tell.
func checkShell(m marked, _ []string, _ string) error {
	text := m.with(m.markers)
	for _, construct := range opaque {
		if strings.Contains(text, construct) {
			return fmt.Errorf("a script with actions must not have %s: put that part into a file without actions", construct)
		}
	}
	found := 0
	for i := 0; i < len(text); {
		if found < len(m.markers) && strings.HasPrefix(text[i:], m.markers[found]) {
			end := i + len(m.markers[found])
			// Of a list behind an equals sign the second word would be run.
			_, isList := m.values[found].([]string)
			if !isWord(text, i, end) || isList && i > 0 && text[i-1] == '=' {
				return errMisplaced
			}
			found++
			i = end
			continue
		}
		length, err := passOver(text, i)
		if err != nil {
			return err
		}
		i += length
	}
	if found != len(m.markers) {
		return errMisplaced
	}
	return nil
}

// passOver is how long what stands at i is: a character, or all that is quoted or a comment.
func passOver(text string, i int) (length int, err error) {
	rest := text[i:]
	switch c := rest[0]; {
	case c == '\\':
		return 2, nil
	case c == '\'' || c == '"':
		end := closing(rest)
		if end < 0 {
			return 0, errors.New("has a quote without its end")
		}
		if c == '"' && strings.Contains(rest[:end], "$(") {
			return 0, errors.New("a script with actions must not have $( in quotes: put that part into a file without actions")
		}
		return end + 1, nil
	case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|()", text[i-1]) >= 0):
		return lineEnd(rest), nil
	}
	return 1, nil
}

// isWord says whether the marker from begin to end is a word, or the value of an assignment.
func isWord(text string, begin, end int) bool {
	before := begin == 0 || strings.IndexByte(" \t\n=", text[begin-1]) >= 0
	after := end == len(text) || strings.IndexByte(" \t\n;)", text[end]) >= 0
	return before && after
}

// closing is where the quote ends that text begins with; negative for nowhere.
func closing(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\':
			i++
		case text[i] == text[0]:
			return i
		}
	}
	return -1
}

func lineEnd(text string) int {
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}
