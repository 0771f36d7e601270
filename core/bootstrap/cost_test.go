package bootstrap

import "testing"

// Check runs in each reconcile of a Machine without a VM, Render once for its VM.
func BenchmarkCheck(b *testing.B) {
	m, c := worker(), cluster()
	for b.Loop() {
		if err := Check(m, c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	m, c := worker(), cluster()
	for b.Loop() {
		if _, err := Render(m, c, token); err != nil {
			b.Fatal(err)
		}
	}
}
