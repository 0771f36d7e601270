package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// output is what a template has printed: texts, and values between them. It ends a template that
// prints too much.
type output struct {
	// before has for each value the text before it; tail is the text behind the last one.
	before []string
	tail   strings.Builder
	values []any
	size   int
}

// maxValues bounds how often a template prints.
const maxValues = 10000

var errTooLong = fmt.Errorf("becomes longer than %d bytes", maxContent)

func (o *output) addText(text []byte) error {
	o.size += len(text)
	if o.size > maxContent {
		return errTooLong
	}
	o.tail.Write(text)
	return nil
}

func (o *output) addValue(value any) error {
	if len(o.values) == maxValues {
		return errTooLong
	}
	o.before = append(o.before, o.tail.String())
	o.values = append(o.values, value)
	o.tail.Reset()
	return nil
}

// with is the output with words instead of the values.
func (o *output) with(words []string) string {
	var b strings.Builder
	for i, word := range words {
		b.WriteString(o.before[i])
		b.WriteString(word)
	}
	b.WriteString(o.tail.String())
	return b.String()
}

// fill returns the output with values as the format quotes them, and these. Whether each stands
// where one may, the format's check says.
func (o *output) fill(f format) (filled string, quoted []string, err error) {
	quoted = make([]string, len(o.values))
	size := o.size
	for i, value := range o.values {
		if quoted[i], err = f.quote(value); err != nil {
			return "", nil, err
		}
		if size += len(quoted[i]); size > maxContent {
			return "", nil, errTooLong
		}
	}
	return o.with(quoted), quoted, nil
}

// marked is an output with a marker of letters and digits for each value. Formats look where those
// stand.
type marked struct {
	*output
	// prefix is how each marker begins. It occurs nowhere in the texts.
	prefix string
	// markers in order. None is the beginning of another.
	markers []string
}

// mark chooses markers that occur nowhere in the texts. It reads the texts once, so that forged
// markers cost no time.
func (o *output) mark() marked {
	const name = "MILLWRIGHT"
	taken := map[string]bool{}
	for text := strings.Join(append(o.before, o.tail.String()), " "); ; {
		_, rest, found := strings.Cut(text, name)
		if !found {
			break
		}
		text = strings.TrimLeft(rest, "0123456789")
		taken[rest[:len(rest)-len(text)]] = true
	}
	free := 0
	for taken[strconv.Itoa(free)] {
		free++
	}
	m := marked{output: o, prefix: fmt.Sprintf("%s%dX", name, free), markers: make([]string, len(o.values))}
	for i := range m.markers {
		m.markers[i] = fmt.Sprintf("%s%05dZ", m.prefix, i)
	}
	return m
}

// errMisplaced is why a template is refused.
var errMisplaced = errors.New("an action stands where no value of its format can stand: it must be a value by itself, without quotes around it and not in a comment")
