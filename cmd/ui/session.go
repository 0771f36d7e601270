package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
)

// cookieName is that of the cookie which every request but the first needs.
const cookieName = "millwright-ui"

// session lets in one browser: the one that first brings the ticket.
type session struct {
	mu sync.Mutex
	// ticket is the secret of the URL that the person opens; empty once it was used.
	ticket string
	// cookie is the secret that the browser keeps, and form the one that the page sends with each
	// change.
	cookie, form string
}

func newSession() *session {
	return &session{ticket: rand.Text(), cookie: rand.Text(), form: rand.Text()}
}

// enter gives the browser that brings the ticket its cookie. It says whether it was the ticket.
func (s *session) enter(w http.ResponseWriter, ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ticket == "" || !same(s.ticket, ticket) {
		return false
	}
	s.ticket = ""
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: s.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	return true
}

// isIn says whether the request has the cookie.
func (s *session) isIn(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(s.cookie, cookie.Value)
}

// isFromPage says whether the request has what only the page knows.
func (s *session) isFromPage(r *http.Request) bool { return same(s.form, r.Header.Get(formHeader)) }

// formHeader carries the secret of the page.
const formHeader = "X-Millwright-Form"

// same takes as long for any text of that length.
func same(secret, text string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(text)) == 1
}
