package rollout

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// event is something that happens from outside in one step of a scenario.
type event struct {
	what string
	do   func(*world)
}

func template(n int) event {
	return event{fmt.Sprintf("template t%d", n), func(w *world) { w.retemplate(n) }}
}

func replicas(n int32) event {
	return event{fmt.Sprintf("replicas %d", n), func(w *world) { w.replicas = n }}
}

// broken makes a set's machines unavailable for good, also those yet to be made.
func broken(template int) event {
	return event{fmt.Sprintf("t%d is broken", template), func(w *world) { w.brokenTemplates = append(w.brokenTemplates, template) }}
}

func mark(template, machines int) event {
	return event{fmt.Sprintf("%d of t%d marked", machines, template), func(w *world) {
		for _, m := range w.set(fmt.Sprintf("t%d", template)).machines[:machines] {
			m.marked = true
		}
	}}
}

// deleted is somebody who deletes machines of a set.
func deleted(template, machines int) event {
	return event{fmt.Sprintf("%d of t%d deleted", machines, template), func(w *world) {
		for _, m := range w.set(fmt.Sprintf("t%d", template)).live()[:machines] {
			m.terminating, m.available = true, false
		}
	}}
}

func pause(paused bool) event {
	return event{map[bool]string{true: "paused", false: "resumed"}[paused], func(w *world) { w.paused = paused }}
}

// restart is a new set of the same template: what is made from it is called t1 here, as if it were
// another.
func restart() event {
	return event{"restart", func(w *world) { w.retemplate(1) }}
}

func percent(n int32) *intstr.IntOrString { return new(intstr.FromString(fmt.Sprintf("%d%%", n))) }
func number(n int32) *intstr.IntOrString  { return new(intstr.FromInt32(n)) }

// Each scenario begins with a settled deployment of template t0, and at step 0 its event happens.
var scenarios = []struct {
	name, why          string
	replicas           int32
	surge, unavailable *intstr.IntOrString
	strategy           clusterv1alpha1.MachineDeploymentStrategyType
	events             map[int][]event
}{
	{
		name: "one-at-a-time", why: "The default: an old machine goes only when its replacement is available.",
		replicas: 3, surge: number(1), unavailable: number(0),
		events: map[int][]event{0: {template(1)}},
	},
	{
		name: "quarter", why: "25 % of 10: 3 more (rounded up), 2 fewer (rounded down).",
		replicas: 10, surge: percent(25), unavailable: percent(25),
		events: map[int][]event{0: {template(1)}},
	},
	{
		name: "no-surge", why: "A full quota: an old machine must be gone before its replacement is made.",
		replicas: 3, surge: number(0), unavailable: number(1),
		events: map[int][]event{0: {template(1)}},
	},
	{
		name: "all-at-once", why: "Surge of 100 %: all new machines at once, then all old ones go at once.",
		replicas: 4, surge: percent(100), unavailable: number(0),
		events: map[int][]event{0: {template(1)}},
	},
	{
		name: "scale-up-midway", why: "Growth is shared in proportion; what rounding leaves over is the new set's.",
		replicas: 10, surge: number(3), unavailable: number(2),
		events: map[int][]event{0: {template(1)}, 2: {replicas(20)}},
	},
	{
		name: "scale-down-midway", why: "Shrinking is shared in proportion; machines that somebody marked go first, of whichever set.",
		replicas: 10, surge: number(3), unavailable: number(2),
		events: map[int][]event{0: {template(1)}, 1: {mark(1, 2), replicas(6)}},
	},
	{
		name: "second-change-midway", why: "The half-made second template is given up as well, unavailable machines first, the oldest set first.",
		replicas: 4, surge: number(1), unavailable: number(1),
		events: map[int][]event{0: {template(1)}, 2: {template(2)}},
	},
	{
		name: "broken-new-template", why: "The rollout stops at maxUnavailable, and a rollback ends it.",
		replicas: 4, surge: number(1), unavailable: number(1),
		events: map[int][]event{0: {broken(1), template(1)}, 5: {template(0)}},
	},
	{
		name: "broken-old-machines", why: "Machines that are unavailable anyway go as fast as new ones come, never below the floor.",
		replicas: 4, surge: number(1), unavailable: number(0),
		events: map[int][]event{0: {broken(0), template(1)}},
	},
	{
		name: "rollback-midway", why: "Back to a template that still has machines: they are used again, none is made anew that need not be.",
		replicas: 4, surge: number(2), unavailable: number(0),
		events: map[int][]event{0: {template(1)}, 2: {template(0)}},
	},
	{
		name: "recreate", why: "All old machines are gone before a new one is made; the size changes on the way.",
		replicas: 3, strategy: recreating,
		events: map[int][]event{0: {template(1)}, 1: {replicas(4)}},
	},
	{
		name: "recreate-rollback-midway", why: "The new template is given up before it has a machine: the old set is filled again.",
		replicas: 3, strategy: recreating,
		events: map[int][]event{0: {template(1)}, 2: {template(0)}},
	},
	{
		name: "on-delete", why: "An old machine is replaced when somebody deletes it, once it is gone; growth is the new set's.",
		replicas: 3, strategy: onDelete,
		events: map[int][]event{0: {template(1)}, 2: {deleted(0, 1)}, 6: {replicas(4)}, 9: {deleted(0, 2)}},
	},
	{
		name: "restart", why: "The same template in a new set: machines are replaced as by any other change.",
		replicas: 3, surge: number(1), unavailable: number(0),
		events: map[int][]event{0: {restart()}},
	},
	{
		name: "pause", why: "Nothing is replaced while it is paused; scaling keeps the mix, and what is left over goes on after.",
		replicas: 10, surge: number(3), unavailable: number(2),
		events: map[int][]event{0: {template(1)}, 2: {pause(true)}, 5: {replicas(20)}, 8: {template(2)}, 10: {replicas(6)}, 14: {pause(false)}},
	},
}

func TestRolloutsTakeTheirGoldenCourse(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			w := &world{replicas: sc.replicas, surge: sc.surge, unavailable: sc.unavailable, strategy: sc.strategy, history: 1}
			for range 3 {
				if _, err := w.slowRound(nil); err != nil {
					t.Fatal(err)
				}
			}
			var log strings.Builder
			limits := w.limits()
			fmt.Fprintf(&log, "# %s\n# replicas %d, maxSurge %d, maxUnavailable %d. A machine takes a step to become available, and one to go.\n",
				sc.why, w.replicas, limits.MaxSurge, limits.MaxUnavailable)
			fmt.Fprintf(&log, "%-4s | %-26s | %-56s | %-56s | %5s | %4s\n", "step", "event", "plan",
				"sets: desired/present/available", "there", "up")
			w.tell(&log, "", "", "")
			for step := 0; ; step++ {
				var names []string
				for _, e := range sc.events[step] {
					names = append(names, e.what)
				}
				plan, err := w.slowRound(sc.events[step])
				if err != nil {
					t.Fatal(err)
				}
				w.tell(&log, fmt.Sprint(step), strings.Join(names, ", "), plan)
				if strings.HasPrefix(plan, "done") {
					break
				}
				if step == 60 {
					t.Fatalf("no end:\n%s", log.String())
				}
			}
			compareGolden(t, filepath.Join("testdata", sc.name+".golden"), log.String())
		})
	}
}

// slowRound is a step of a scenario: what was begun in the step before has an effect, the events
// happen, everybody acts.
func (w *world) slowRound(events []event) (string, error) {
	for _, e := range events {
		e.do(w)
	}
	if state := w.state(); len(events) > 0 {
		// The deployment's controller tells sets at once which part they have.
		for i, ws := range w.sets {
			ws.part = state.Part(&state.Sets[i])
		}
	}
	for _, ws := range w.sets {
		for _, m := range slices.Clone(ws.machines) {
			m.broken = w.isBroken(ws.template)
			m.available = !m.broken && !m.terminating
			w.reap(m)
		}
		ws.act(w)
		ws.arrive()
	}
	state := w.state()
	actions, wait := Plan(state)
	if err := w.apply(actions, len(actions)); err != nil {
		return "", err
	}
	for _, ws := range w.sets {
		ws.act(w)
		ws.arrive()
	}
	switch {
	case len(actions) > 0:
		return tellActions(actions, w), nil
	case wait.For == Nothing:
		return "done", nil
	case wait.Set == "":
		return fmt.Sprintf("wait: %s", wait.For), nil
	default:
		return fmt.Sprintf("wait: %s of %d in %s", wait.For, wait.Machines, wait.Set), nil
	}
}

func (w *world) isBroken(template int) bool {
	return slices.Contains(w.brokenTemplates, template)
}

func tellActions(actions []Action, w *world) string {
	var words []string
	for _, a := range actions {
		switch a := a.(type) {
		case CreateSet:
			words = append(words, fmt.Sprintf("make t%d with %d", w.template, a.Replicas))
		case ScaleSet:
			words = append(words, fmt.Sprintf("%s %d→%d (%s)", a.Name, a.From, a.To, a.Reason))
		case DeleteSet:
			words = append(words, "drop "+a.Name)
		}
	}
	return strings.Join(words, ", ")
}

func (w *world) tell(log *strings.Builder, step, event, plan string) {
	var sets []string
	var there, up int
	for _, ws := range w.sets {
		available := 0
		for _, m := range ws.machines {
			if m.available && !m.terminating {
				available++
			}
		}
		there, up = there+len(ws.machines), up+available
		sets = append(sets, fmt.Sprintf("%s %d/%d/%d", ws.name, ws.desired, len(ws.machines), available))
	}
	line := fmt.Sprintf("%-4s | %-26s | %-56s | %-56s | %5d | %4d", step, event, plan, strings.Join(sets, "  "), there, up)
	fmt.Fprintln(log, strings.TrimRight(line, " "))
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}
