package api

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// Gibibytes is a size that clients write as a number or as text.
type Gibibytes int

var number = regexp.MustCompile(`^[0-9]+$`)

// UnmarshalJSON reads both forms. What is none of them has been refused before: see CheckNumber.
func (g *Gibibytes) UnmarshalJSON(raw []byte) error {
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	*g = Gibibytes(n)
	return err
}

// CheckNumber refuses a text that is no number.
func CheckNumber(field string, raw json.RawMessage) error {
	if text, isText := TextOf(raw); isText && !number.MatchString(text) {
		return Invalid(field, text, "'"+text+"' does not match '^[0-9]+$'")
	}
	return nil
}
