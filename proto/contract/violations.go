package contract

import "strings"

// Violation is one way in which a message breaks its shape.
type Violation struct {
	// Field is the path in the message, in the proto's names, e.g. "machine.uid".
	Field string
	// Description says what is wrong and what would be right; it never repeats a field's value.
	Description string
	// Size is set when a limit in bytes is exceeded.
	Size bool
}

// Violations is what a check found. Empty means that the shape holds.
type Violations []Violation

// Error lists the violations; empty for none.
func (v Violations) Error() string {
	parts := make([]string, 0, len(v))
	for _, one := range v {
		parts = append(parts, one.Field+": "+one.Description)
	}
	return strings.Join(parts, "; ")
}

// Err returns v as an error, nil when it is empty.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return v
}

// TooLarge says whether every violation is about a size: such a request is REQUEST_TOO_LARGE, not
// SPEC_INVALID.
func (v Violations) TooLarge() bool {
	for _, one := range v {
		if !one.Size {
			return false
		}
	}
	return len(v) > 0
}
