package forecast

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/rollout"
)

// NewSet stands for the name of a set that is yet to be made.
const NewSet = "(new)"

// Forecast is what will happen to a deployment.
type Forecast struct {
	// Waves are what happens, in this order. In some of them the controllers do nothing, since what
	// is under way does not let them do anything yet; the last is not one of them.
	Waves []Wave
	// Wait is what the deployment waits for at the end; Nothing if it is complete.
	Wait rollout.Wait
	// Replicas is how many machines the deployment should have.
	Replicas int
	// Before and After are how many machines are available at first and at the end, and Least is
	// how many are at any time.
	Before, After, Least int
}

// Wave is what controllers do until they have to wait for machines.
type Wave struct {
	// Changes are those of sets that change, each once, in the order in which they begin.
	Changes []Change
	// Machines is how many there are when the wave has begun, those on their way out included.
	Machines int
	// Available is how many of them are available then.
	Available int
}

// Change is what happens to a set.
type Change struct {
	// Set is its name, or NewSet.
	Set string
	// Deleted: an empty set is deleted.
	Deleted bool
	// From and To are its size.
	From, To int32
	// Create is how many machines are created.
	Create int
	// Delete are the names of the machines that are deleted, the first to go first. A machine that
	// is yet to be created has a name that no object has.
	Delete []string
}

// change returns the change of a set, which has that size if the wave has not changed it.
func (w *Wave) change(set string, size int32) *Change {
	for i := range w.Changes {
		if w.Changes[i].Set == set {
			return &w.Changes[i]
		}
	}
	w.Changes = append(w.Changes, Change{Set: set, From: size, To: size})
	return &w.Changes[len(w.Changes)-1]
}

// Of returns what will happen if the deployment is as md. Its sets and their machines, by the uid
// of the set, are what is there now. It is an error if a template cannot be read.
func Of(
	md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet, machines map[types.UID][]clusterv1alpha1.Machine, now time.Time,
) (Forecast, error) {
	w, err := newWorld(md, sets, machines, now)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{Replicas: int(w.deployment.Replicas)}
	there, available := w.count()
	f.Before, f.Least = available, available
	for waves := 2 * (there + f.Replicas + len(w.sets) + 2); waves > 0; waves-- {
		var wave Wave
		f.Wait = w.wave(&wave)
		wave.Machines, wave.Available = w.count()
		f.Least, f.After = min(f.Least, wave.Available), wave.Available
		f.Waves = append(f.Waves, wave)
		if !w.pass() {
			break
		}
	}
	if last := len(f.Waves) - 1; len(f.Waves[last].Changes) == 0 {
		f.Waves = f.Waves[:last]
	}
	return f, nil
}

// wave has the controllers act until they have to wait, and says for what.
func (w *world) wave(wave *Wave) rollout.Wait {
	for {
		acts, wait := w.plan(wave)
		for _, s := range w.sets {
			if w.act(s, wave) {
				acts = true
			}
		}
		if !acts {
			return wait
		}
	}
}
