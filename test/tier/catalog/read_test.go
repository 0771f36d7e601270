package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTestsAreReadFromSource(t *testing.T) {
	const source = `package x
func TestROL1_Rolls(t *testing.T) { t.Parallel() }
func TestSAFE4_SET4_Meltdown(t *testing.T) {
	tier.Long(t, "it takes \"minutes\"")
	t.Parallel()
}
func TestROL2_Late(t *testing.T) {
	t.Parallel()
	tier.Long(t, "too late")
}
func TestROL3_Other(t *testing.T) { other.Long(t, "of another package") }
func TestNoID(t *testing.T) { tier.Long(t, "x") }
func (u user) TestROL4_Method() {}
`
	got, err := parse("test/x", "x_test.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{
		{"test/x", "TestROL1_Rolls", []string{"ROL1"}, ""},
		{"test/x", "TestSAFE4_SET4_Meltdown", []string{"SAFE4", "SET4"}, `it takes "minutes"`},
		{"test/x", "TestROL2_Late", []string{"ROL2"}, ""},
		{"test/x", "TestROL3_Other", []string{"ROL3"}, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := parse("test/x", "x_test.go", []byte("package x\nfunc TestROL1_Rolls(t *testing.T) { tier.Long(t, why) }\n")); err == nil {
		t.Error("a reason that is no literal passes")
	}
}
