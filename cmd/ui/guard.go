package ui

import (
	"net/http"
)

// contentPolicy lets the page load its own files and talk to its own server, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard answers what must not reach the page's handlers, and adds to every answer what a browser
// needs to know. host is the address under which the page is served.
func guard(host string, s *session, next http.Handler) http.Handler {
	checked := http.NewCrossOriginProtection().Handler(next) // it refuses changes from other sites
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		// Another name for this address is one that somebody else may own: DNS rebinding.
		if r.Host != host {
			http.Error(w, "this page is served as http://"+host+" only", http.StatusMisdirectedRequest)
			return
		}
		if ticket := r.URL.Query().Get("ticket"); r.Method == http.MethodGet && r.URL.Path == "/" && ticket != "" && s.enter(w, ticket) {
			http.Redirect(w, r, "/", http.StatusSeeOther) // the ticket leaves the address bar
			return
		}
		if !s.isIn(r) {
			http.Error(w, "open the address that `kubectl millwright ui` has printed; it lets in one browser, once", http.StatusUnauthorized)
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			http.Error(w, "this page answers no other page", http.StatusForbidden)
			return
		}
		checked.ServeHTTP(w, r)
	})
}
