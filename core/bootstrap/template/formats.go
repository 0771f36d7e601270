package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/pelletier/go-toml/v2"
)

// format is how values are written into one kind of text.
type format struct {
	// quote writes a value as one value of the format.
	quote func(any) (string, error)
	// check says whether the filled text is the marked one with quoted values instead of markers.
	check func(m marked, quoted []string, filled string) error
}

// formats by the name that a file declares.
var formats = map[string]format{
	"sh":   {quote: quoteShell, check: checkShell},
	"unit": {quote: quoteUnit, check: checkUnit},
	"toml": {quote: quoteData, check: checkTree(func(text string, into *any) error { return toml.Unmarshal([]byte(text), into) })},
	"yaml": {quote: quoteData, check: checkTree(func(text string, into *any) error { return readYAML(text, into) })},
}

// quoteData writes a value as YAML and TOML both read it: JSON, of which texts have no character
// but printable ASCII.
func quoteData(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return quoteText(v)
	case []string:
		items := make([]string, 0, len(v))
		for _, item := range v {
			quoted, err := quoteText(item)
			if err != nil {
				return "", err
			}
			items = append(items, quoted)
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	}
	return plain(value)
}

// quoteText writes a text in double quotes.
func quoteText(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", errors.New("a value is no text")
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String(), nil
}

// plain writes numbers and truth values.
func plain(value any) (string, error) {
	switch value.(type) {
	case bool, int, int32, int64:
		return fmt.Sprint(value), nil
	}
	return "", errors.New("an action prints neither text, nor a number, nor a list of texts")
}

// checkTree reads both texts, and compares what they say.
func checkTree(read func(string, *any) error) func(marked, []string, string) error {
	return func(m marked, _ []string, filled string) error {
		var want, got any
		texts := make([]string, len(m.markers))
		for i, marker := range m.markers {
			texts[i] = `"` + marker + `"`
		}
		err := read(m.with(texts), &want)
		if errors.Is(err, errSecond) || errors.Is(err, errAliases) {
			return err
		}
		if err != nil {
			// Its words may hold a part of the text.
			return errors.New("is not of its format, or an action stands within quotes")
		}
		if err := read(filled, &got); err != nil {
			return errMisplaced
		}
		found := make([]int, len(m.markers))
		if want, err = m.replace(want, found); err != nil {
			return err
		}
		// An alias of YAML has a marker twice; of another nothing is seen in a comment.
		isOther := func(times int) bool { return times != 1 }
		if slices.ContainsFunc(found, isOther) || normal(want) != normal(got) {
			return errMisplaced
		}
		return nil
	}
}

// replace returns a tree with values for its markers, each of which must be a value by itself. It
// counts how often it finds each.
func (m marked) replace(tree any, found []int) (any, error) {
	switch t := tree.(type) {
	case string:
		if i, is := slices.BinarySearch(m.markers, t); is {
			found[i]++
			return m.values[i], nil
		}
		if strings.Contains(t, m.prefix) {
			return nil, errMisplaced
		}
	case []any:
		all := make([]any, len(t))
		for i := range t {
			var err error
			if all[i], err = m.replace(t[i], found); err != nil {
				return nil, err
			}
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(t))
		for key := range t {
			if strings.Contains(key, m.prefix) {
				return nil, errMisplaced
			}
			var err error
			if all[key], err = m.replace(t[key], found); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return tree, nil
}

// normal is a tree as JSON: formats differ in the types of their numbers.
func normal(tree any) string {
	data, err := json.Marshal(tree)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// unitCharacters are what a value in a unit may have besides letters and digits: with them it is
// one word, whatever the option.
const unitCharacters = "-_.,:/=+@%~[]"

// quoteUnit writes a value as one word without quotes, which systemd reads the same in each option.
func quoteUnit(value any) (string, error) {
	text, is := value.(string)
	if !is {
		return plain(value)
	}
	unfit := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(unitCharacters, r)
	}
	if text == "" || strings.ContainsFunc(text, unfit) {
		return "", fmt.Errorf("a value in a unit must be one word of letters, digits and %s: put it into a file that the unit reads", unitCharacters)
	}
	return strings.ReplaceAll(text, "%", "%%"), nil
}

// checkUnit compares the options of both texts: markers may stand in values only.
func checkUnit(m marked, quoted []string, filled string) error {
	want, err := unit.DeserializeOptions(strings.NewReader(m.with(m.markers)))
	if err != nil {
		return errors.New("is no unit")
	}
	got, err := unit.DeserializeOptions(strings.NewReader(filled))
	if err != nil {
		return errMisplaced
	}
	var pairs []string
	for i, marker := range m.markers {
		pairs = append(pairs, marker, quoted[i])
	}
	replacer, found := strings.NewReplacer(pairs...), 0
	for _, option := range want {
		if strings.Contains(option.Section+option.Name, m.prefix) {
			return errMisplaced
		}
		found += strings.Count(option.Value, m.prefix)
		option.Value = replacer.Replace(option.Value)
	}
	same := slices.EqualFunc(want, got, func(a, b *unit.UnitOption) bool { return *a == *b })
	if !same || found != len(m.values) {
		return errMisplaced
	}
	return nil
}
