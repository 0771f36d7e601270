package redact

import "sync"

const (
	// maxRemembered is how many values a Memory holds, maxRememberedBytes how long each may be.
	maxRemembered      = 64
	maxRememberedBytes = 8 << 10
)

// Memory remembers the latest secrets that went with requests, for what is said where none did: a
// driver may repeat in its answer to a probe what it was told a minute ago. The zero value is
// ready; safe for use by several goroutines.
type Memory struct {
	mu     sync.Mutex
	known  map[string]*secret
	latest []*secret
}

// Of returns the secrets of a request, and remembers those of its ProviderContext. Of a request
// without any it returns what is remembered.
func (m *Memory) Of(request any) *Secrets {
	values := valuesOf(request)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &Secrets{}
	for _, value := range values {
		s.all = append(s.all, m.remember(value))
	}
	if len(values) == 0 {
		s.all = append(s.all, m.latest...)
	}
	return s.withUserData(request)
}

// remember returns the secret of that value. Call it with the lock held.
func (m *Memory) remember(value []byte) *secret {
	if known, is := m.known[string(value)]; is {
		return known
	}
	one := &secret{value: string(value)}
	if len(value) > maxRememberedBytes {
		return one
	}
	if m.known == nil {
		m.known = map[string]*secret{}
	}
	if len(m.latest) == maxRemembered {
		delete(m.known, m.latest[0].value)
		m.latest = m.latest[1:]
	}
	m.known[one.value] = one
	m.latest = append(m.latest, one)
	return one
}
