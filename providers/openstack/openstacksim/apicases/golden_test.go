package apicases_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// apiCase is a script of requests.
type apiCase struct {
	name string
	do   func(*run)
	// simulator says how the simulator is to be; real services are slow enough by themselves.
	simulator openstacksim.Options
}

// releases are the releases of OpenStack that there is a recording of, the simulator's own first.
var releases = []string{"zed"}

func TestSimulator(t *testing.T) {
	golden := readGolden(t, releases[0])
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compare(t, golden, c, simulator(t, c.simulator))
		})
	}
}

func TestServices(t *testing.T) {
	on, release := services(t)
	if os.Getenv("MILLWRIGHT_OPENSTACK_RECORD") != "" {
		record(t, on, release)
		return
	}
	golden := readGolden(t, release)
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) { compare(t, golden, c, on) })
	}
}

func compare(t *testing.T, golden map[string]string, c apiCase, on target) {
	t.Helper()
	want, ok := golden[c.name]
	if !ok {
		t.Fatal("nobody has recorded it: see the package's comment")
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(transcript(t, c, on), "\n")); diff != "" {
		t.Errorf("the answers differ (-recorded +answered):\n%s", diff)
	}
}

func transcript(t *testing.T, c apiCase, on target) string {
	t.Helper()
	r := newRun(t, on)
	r.login(member)
	c.do(r)
	return strings.TrimSpace(r.transcript.String()) + "\n"
}

// record writes what the cases that run get; of the others, what is recorded stays.
func record(t *testing.T, on target, release string) {
	t.Helper()
	golden := map[string]string{}
	if _, err := os.Stat(goldenPath(release)); err == nil {
		golden = readGolden(t, release)
	}
	cases := allCases()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			golden[c.name] = transcript(t, c, on)
			writeGolden(t, release, cases, golden)
		})
	}
}

func writeGolden(t *testing.T, release string, cases []apiCase, golden map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, c := range cases {
		if golden[c.name] != "" {
			fmt.Fprintf(&text, "%s%s\n\n%s\n", heading, c.name, golden[c.name])
		}
	}
	if err := os.WriteFile(goldenPath(release), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func goldenPath(release string) string { return filepath.Join("testdata", release+".golden") }

// heading begins a case in a golden file.
const heading = "=== "

func readGolden(t *testing.T, release string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(goldenPath(release))
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for section := range strings.SplitSeq("\n"+string(raw), "\n"+heading) {
		name, text, _ := strings.Cut(section, "\n")
		golden[name] = strings.TrimSpace(text) + "\n"
	}
	delete(golden, "")
	return golden
}

// TestGolden wants every recording to be of a case.
func TestGolden(t *testing.T) {
	var cases []string
	for _, c := range allCases() {
		cases = append(cases, c.name)
	}
	slices.Sort(cases)
	if twice := slices.Compact(slices.Clone(cases)); len(twice) != len(cases) {
		t.Error("two cases have one name")
	}
	for _, release := range releases {
		if diff := cmp.Diff(cases, slices.Sorted(maps.Keys(readGolden(t, release)))); diff != "" {
			t.Errorf("%s (-cases +recorded):\n%s", release, diff)
		}
	}
}

func allCases() []apiCase {
	return slices.Concat(identityCases(), catalogCases(), serverCases(), refusedServerCases(), stateCases(), listCases(),
		portCases(), refusedPortCases(), floatingIPCases(), trunkCases(), groupCases(), quotaCases(), volumeCases(), referenceCases())
}
