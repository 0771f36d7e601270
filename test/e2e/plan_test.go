package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/cmd/plan"
)

// What a plan says before a change is what then happens: which Machines go, and how many are
// available at the least.
func TestROL7_PlansComeTrue(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("planned", 4, nil))
	u.awaitRunning(4)
	for _, change := range []struct {
		replicas int
		fields   map[string]string
		replaces int
	}{
		{4, map[string]string{"spec": "\n      nodeDrainTimeout: 1h"}, 0},
		{4, map[string]string{"kubelet": "1.34.2", "surge": "1", "unavailable": "1"}, 4},
		{2, map[string]string{"kubelet": "1.34.1", "surge": "0", "unavailable": "1"}, 4},
	} {
		file := filepath.Join(t.TempDir(), "planned.yaml")
		if err := os.WriteFile(file, []byte(deployment("planned", change.replicas, change.fields)), 0o600); err != nil {
			t.Fatal(err)
		}
		before := u.names()
		p := u.plan(file)
		if p.Delete != change.replaces {
			t.Errorf("%v: %d machines are planned to go, want %d", change, p.Delete, change.replaces)
		}
		stop := u.keepExtremes()
		u.kubectl("apply", "-f", file)
		u.rolledOut("planned")
		u.awaitRunning(change.replicas)
		if _, least := stop(); least < p.LeastAvailable {
			t.Errorf("%v: %d machines were available at the least, planned were %d", change, least, p.LeastAvailable)
		}
		var gone []string
		for _, name := range before {
			if !slices.Contains(u.names(), name) {
				gone = append(gone, name)
			}
		}
		var planned []string
		for _, wave := range p.Waves {
			for _, names := range wave.Delete {
				planned = append(planned, names...)
			}
		}
		slices.Sort(planned)
		if diff := cmp.Diff(planned, gone); diff != "" {
			t.Errorf("%v: -planned +gone\n%s", change, diff)
		}
		if p := u.plan(file); !p.IsQuiet() || len(p.Changes) > 0 {
			t.Errorf("%v: when it is done there is still planned %+v", change, p)
		}
	}
	if out, err := u.plugin("scale", "md/planned", "--replicas", "3", "--watch"); err != nil || !strings.Contains(out, `"planned" is rolled out`) {
		t.Errorf("scale: %v: %s", err, out)
	}
	if running := len(u.machines()); running != 3 {
		t.Errorf("scale has ended at %d machines", running)
	}
}

// plan is that of a file with one deployment.
func (u *user) plan(file string) *plan.Plan {
	u.t.Helper()
	out, err := u.plugin("plan", "-f", file, "-o", "json")
	if err != nil {
		u.t.Fatalf("plan: %v\n%s", err, out)
	}
	var plans []*plan.Plan
	if err := json.Unmarshal([]byte(out), &plans); err != nil || len(plans) != 1 {
		u.t.Fatalf("plan says %v: %s", err, out)
	}
	return plans[0]
}
