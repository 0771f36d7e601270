package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Mark stands where something was taken out.
const Mark = "[redacted]"

// Secrets are those of one call. nil holds none. Safe for use by several goroutines.
type Secrets struct {
	all []*secret
}

// secret is one value; its forms are made when they are first looked for.
type secret struct {
	value string
	once  sync.Once
	forms []string
}

// Of returns the secrets of a request: the values of its ProviderContext.secrets, and its user data
// with all long words in it. Values of less than 6 bytes are none: they would be found everywhere.
func Of(request any) *Secrets {
	s := &Secrets{}
	for _, value := range valuesOf(request) {
		s.all = append(s.all, &secret{value: string(value)})
	}
	return s.withUserData(request)
}

// And adds values that go with no request. Like user data, they are looked for with all long words
// in them.
func (s *Secrets) And(values ...[]byte) *Secrets {
	for _, value := range values {
		if len(value) >= minSecret {
			s.all = append(s.all, &secret{value: string(value)})
		}
	}
	return s
}

// withUserData adds a request's user data.
func (s *Secrets) withUserData(request any) *Secrets {
	if r, ok := request.(interface{ GetUserData() []byte }); ok && len(r.GetUserData()) >= minSecret {
		s.all = append(s.all, &secret{value: string(r.GetUserData())})
	}
	return s
}

// valuesOf returns the values of a request's ProviderContext.secrets that are long enough.
func valuesOf(request any) [][]byte {
	r, ok := request.(interface {
		GetProvider() *driverv1alpha1.ProviderContext
	})
	if !ok {
		return nil
	}
	var values [][]byte
	for _, value := range r.GetProvider().GetSecrets() {
		if len(value) >= minSecret {
			values = append(values, value)
		}
	}
	return values
}

// Text returns text with Mark in the place of each secret, in whatever form. A secret that is cut
// off is found as well, for clouds and drivers shorten what they say.
func (s *Secrets) Text(text string) string {
	found := s.find(text)
	if len(found) == 0 {
		return text
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var clean strings.Builder
	done := 0
	for _, f := range found {
		if f.from >= done {
			clean.WriteString(text[done:f.from] + Mark)
		}
		done = max(done, f.to)
	}
	clean.WriteString(text[done:])
	// A secret that is cut off may end within a character.
	return strings.ToValidUTF8(clean.String(), "\uFFFD")
}

// in says whether a text holds a secret.
func (s *Secrets) in(text string) bool { return len(s.find(text)) > 0 }

// span is a part of a text.
type span struct{ from, to int }

func (s *Secrets) find(text string) []span {
	if s == nil || len(text) < minSecret {
		return nil
	}
	var found []span
	for _, one := range s.all {
		one.once.Do(func() { one.forms = formsOf(one.value) })
		for _, form := range one.forms {
			found = occurrences(found, text, form)
		}
	}
	return found
}

// occurrences adds where in text a form begins and how far the text goes on as the form does.
func occurrences(found []span, text, form string) []span {
	head := form[:headOf(len(form))]
	for from := 0; ; {
		at := strings.Index(text[from:], head)
		if at < 0 {
			return found
		}
		at += from
		to := at + len(head) + common(text[at+len(head):], form[len(head):])
		found = append(found, span{at, to})
		from = at + 1
		if to == at+len(form) {
			from = to
		}
	}
}

// common is how many bytes a and b begin with in common.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
