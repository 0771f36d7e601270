package compute

import "testing"

func TestLiteral(t *testing.T) {
	for expression, want := range map[string]string{
		`^name-a$`: "name-a", `^a\.b$`: "a.b", `^a|b$`: "a|b", `^$`: "",
	} {
		if got, whole := Literal(expression); got != want || !whole {
			t.Errorf("%s finds %q alone: %t, want %q", expression, got, whole, want)
		}
	}
	for _, expression := range []string{"name", "^name", "name$", "^a.b$", "^a*$", "^(a)$"} {
		if got, whole := Literal(expression); whole {
			t.Errorf("%s finds %q alone", expression, got)
		}
	}
}
