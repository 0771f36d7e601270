package providerspec

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/core/messages"
)

// Path leads to a value in a spec. Its elements are keys of objects, as string, and indexes of
// lists, as int.
type Path []any

// String is the path as drivers read it, such as auth.password or networks[0].key. A key that holds
// a dot, a bracket, a quote or nothing stands in brackets, as a JSON string: ["a.b"].
func (p Path) String() string {
	var b strings.Builder
	for _, element := range p {
		switch e := element.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(e) + "]")
		case string:
			if e == "" || strings.ContainsAny(e, `.[]"`) {
				quoted, _ := json.Marshal(e) // a string cannot fail
				b.WriteString("[" + string(quoted) + "]")
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(e)
		}
	}
	return b.String()
}

// maxShown is how much of a path people are shown, in bytes.
const maxShown = 256

// Shown is the path for people: on one line, and not longer than they can read.
func (p Path) Shown() string { return messages.OneLine(p.String(), maxShown) }

// under returns the path of something in what p leads to. It shares nothing with p.
func (p Path) under(element any) Path {
	return append(append(make(Path, 0, len(p)+1), p...), element)
}
