package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// minSecret is the shortest form that is looked for, in bytes.
	minSecret = 6
	// maxHead is how much of a longer form is enough to know it by.
	maxHead = 12
	// minWord is the shortest part of a document that is looked for by itself.
	minWord = 12
	// maxDisguised is the longest value that is looked for in each form. Of a longer one, such as
	// user data, the words and base64 are enough.
	maxDisguised = 4 << 10
)

// headOf is how many bytes of a form of n bytes are enough to know it by: a cut-off secret is most
// of a secret.
func headOf(n int) int {
	return min(maxHead, max(minSecret, n*3/4))
}

// formsOf are the ways in which a secret gets into a text, each once. Those that Mark holds are
// left out.
func formsOf(value string) []string {
	all := append(wordsOf(value), value)
	for shift := range 3 {
		all = append(all, inBase64(base64.RawStdEncoding, value, shift), inBase64(base64.RawURLEncoding, value, shift))
	}
	if len(value) <= maxDisguised {
		query := url.QueryEscape(value)
		all = append(all, unquoted(strconv.Quote(value)), unquoted(asJSON(value)),
			hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))),
			query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(value),
			strings.Trim(fmt.Sprint([]byte(value)), "[]"),
		)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(form string) bool {
		return len(form) < minSecret || strings.Contains(Mark, form)
	})
}

// inBase64 is what a secret looks like inside the base64 of a longer text, such as a password after
// "user:". The secret begins shift bytes after a multiple of three. The characters at its ends,
// which depend on its neighbours, are left out.
func inBase64(encoding *base64.Encoding, secret string, shift int) string {
	padded := append(make([]byte, shift), secret...)
	const bits = 6
	return encoding.EncodeToString(padded)[(shift*8+bits-1)/bits : len(padded)*8/bits]
}

// wordsOf are the parts of a document that may be secrets by themselves: a token in user data, a
// line of a key, a password in a configuration file.
func wordsOf(document string) []string {
	lines := strings.NewReplacer(`\n`, "\n", `\r`, "\n", `\t`, "\n").Replace(document)
	words := strings.FieldsFunc(lines, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`,;:=@()[]{}<>|", r)
	})
	return slices.DeleteFunc(words, func(word string) bool { return len(word) < minWord })
}

// asJSON is text as encoding/json writes it, which escapes more than Go does.
func asJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return string(quoted)
}

func unquoted(text string) string { return text[1 : len(text)-1] }
