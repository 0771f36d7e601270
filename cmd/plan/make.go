package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/forecast"
	"github.com/millwright-dev/millwright/core/rollout"
)

// Plan is what a change of a MachineDeployment would do.
type Plan struct {
	// Namespace and Name are the deployment's. IsNew: it does not exist yet.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	IsNew     bool   `json:"isNew,omitempty"`
	// Changes are the fields of its spec that change, in the order of their paths.
	Changes []Change `json:"changes"`
	// Waves are in which order machines are created and deleted.
	Waves []Wave `json:"waves"`
	// Create and Delete count the machines of all waves.
	Create int `json:"create"`
	Delete int `json:"delete"`
	// Replicas is how many machines there should be. Available is how many are available now,
	// LeastAvailable how many are while the change happens, and AvailableAfter how many at the end.
	Replicas       int `json:"replicas"`
	Available      int `json:"available"`
	LeastAvailable int `json:"leastAvailable"`
	AvailableAfter int `json:"availableAfter"`
	// WaitsFor is what keeps the deployment from being complete at the end; empty if it is.
	WaitsFor string `json:"waitsFor,omitempty"`
}

// Wave is what happens before the next machines have to come up or go.
type Wave struct {
	// Create is how many machines are created, by their set. Delete are the names of those that are
	// deleted, by theirs. The name of a set that is yet to be made is "(new)".
	Create map[string]int      `json:"create,omitempty"`
	Delete map[string][]string `json:"delete,omitempty"`
	// Machines is how many there are then, and Available how many of them are available.
	Machines  int `json:"machines"`
	Available int `json:"available"`
}

// IsQuiet says whether no machine is created or deleted.
func (p *Plan) IsQuiet() bool { return p.Create+p.Delete == 0 }

// Make plans the change of a deployment from before, nil if it does not exist, to after. Sets and
// machines are those of its namespace; others than its own do not count.
func Make(
	before, after *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet, machines []clusterv1alpha1.Machine, now time.Time,
) (*Plan, error) {
	p := &Plan{Namespace: after.Namespace, Name: after.Name, IsNew: before == nil, Waves: []Wave{}}
	var err error
	if p.Changes, err = changesOf(before, after); err != nil {
		return nil, err
	}
	var own []clusterv1alpha1.MachineSet
	bySet := map[types.UID][]clusterv1alpha1.Machine{}
	for i := range sets {
		if before == nil || !metav1.IsControlledBy(&sets[i], before) {
			continue
		}
		own = append(own, sets[i])
		for j := range machines {
			if metav1.IsControlledBy(&machines[j], &sets[i]) {
				bySet[sets[i].UID] = append(bySet[sets[i].UID], machines[j])
			}
		}
	}
	f, err := forecast.Of(after, own, bySet, now)
	if err != nil {
		return nil, err
	}
	p.Replicas, p.Available, p.LeastAvailable, p.AvailableAfter = f.Replicas, f.Before, f.Least, f.After
	for _, w := range f.Waves {
		p.add(w)
	}
	p.WaitsFor = waitsFor(f.Wait, after, now)
	return p, nil
}

// add adds a wave, unless it creates and deletes nothing.
func (p *Plan) add(w forecast.Wave) {
	wave := Wave{Create: map[string]int{}, Delete: map[string][]string{}, Machines: w.Machines, Available: w.Available}
	for _, c := range w.Changes {
		p.Create += c.Create
		p.Delete += len(c.Delete)
		if c.Create > 0 {
			wave.Create[c.Set] = c.Create
		}
		if len(c.Delete) > 0 {
			wave.Delete[c.Set] = c.Delete
		}
	}
	if len(wave.Create)+len(wave.Delete) > 0 {
		p.Waves = append(p.Waves, wave)
	}
}

// waitsFor says what is waited for at the end.
func waitsFor(w rollout.Wait, md *clusterv1alpha1.MachineDeployment, now time.Time) string {
	switch after := md.Spec.RolloutAfter; {
	case w.For == rollout.Resumption:
		return "The deployment is paused: no machine is replaced until it is resumed."
	case w.For == rollout.Request:
		return fmt.Sprintf("%d machines of MachineSet %s stay until somebody deletes them: the strategy is OnDelete.", w.Machines, w.Set)
	case w.For == rollout.Availability:
		return fmt.Sprintf("%d machines of MachineSet %s are not available now, and nothing says that they will be.", w.Machines, w.Set)
	case w.For != rollout.Nothing:
		return fmt.Sprintf("MachineSet %s does not get on: it is paused, or its machines are held back.", w.Set)
	case after != nil && after.After(now):
		return fmt.Sprintf("From %s on, all machines are replaced: spec.rolloutAfter says so.", after.UTC().Format(time.RFC3339))
	default:
		return ""
	}
}
