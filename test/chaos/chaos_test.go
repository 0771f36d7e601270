package chaos

import (
	"os"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/chaos/arena"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
	"github.com/millwright-dev/millwright/test/chaos/plan"
	"github.com/millwright-dev/millwright/test/tier"
)

const (
	binDir     = "../../bin"
	commandDir = "../../" + tier.Commands
	deployDir  = "../../deploy"
)

// A short campaign of a seed that does not change: as much as there is time for in every run of the
// tests. Longer ones are `make chaos`.
func TestSAFE5_ShortCampaign(t *testing.T) {
	tier.Long(t, "rounds of kills and outages take minutes")
	// Sockets lie in it: its path has to be short.
	dir, err := os.MkdirTemp("", "mw-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 8
	_, err = arena.Run(t.Context(), arena.Options{
		Cloud: clouds.Fake(), BinDir: binDir, CommandDir: commandDir, DeployDir: deployDir, Dir: dir, Seed: 1, Rounds: rounds,
		Plan: plan.Options{
			Window: time.Second, ControlPlane: true, Strays: true, Team: true, Claims: true, Outages: true,
			Hooks: true, Sickness: true, Volumes: true,
		},
		Out: t.Output(),
	})
	if err != nil {
		t.Fatalf("%v (logs are in %s)", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
