package health

import "time"

// Attempts count how often failed Machines of a set were replaced in vain. The zero value is none.
type Attempts struct {
	// Count is how often Machines were replaced since one came up that was created after Since.
	Count int
	// Since is when the newest Machine was created that was there at the last attempt. It is the
	// API server's time, like that of all creations.
	Since time.Time
}

// After returns the attempts after one more, when these Machines were there.
func (a Attempts) After(machines []Machine) Attempts {
	a.Count++
	for _, m := range machines {
		if m.Created.After(a.Since) {
			a.Since = m.Created
		}
	}
	return a
}

// Seen returns the attempts as they count when these Machines are seen: none if one has come up
// that was created after the last.
func (a Attempts) Seen(machines []Machine) Attempts {
	for _, m := range machines {
		if m.Available && m.Created.After(a.Since) {
			return Attempts{}
		}
	}
	return a
}
