package manager

import "testing"

func TestAllowance(t *testing.T) {
	for text, want := range map[string]bool{
		"33%": true, "100%": true, "1%": true, "1": true, "500": true,
		"0": false, "0%": false, "-1": false, "101%": false, "some": false, "": false, "%": false, "1.5": false,
	} {
		if got := allowance(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}
