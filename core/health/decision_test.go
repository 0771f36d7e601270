package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var start = time.Unix(1_000_000, 0)

// failed is a Machine created at that minute, that has been known to have failed for long.
func failed(uid string, minute int, change ...func(*Machine)) Machine {
	m := Machine{UID: uid, Created: start.Add(time.Duration(minute) * time.Minute), Failed: true, FailedSince: start}
	for _, c := range change {
		c(&m)
	}
	return m
}

// up is an available Machine created at that minute.
func up(uid string, minute int) Machine {
	return Machine{UID: uid, Created: start.Add(time.Duration(minute) * time.Minute), Available: true}
}

// coming is a Machine created at that minute that has not come up.
func coming(uid string, minute int, change ...func(*Machine)) Machine {
	m := Machine{UID: uid, Created: start.Add(time.Duration(minute) * time.Minute)}
	for _, c := range change {
		c(&m)
	}
	return m
}

func deleting(m *Machine)  { m.Deleting = true }
func preserved(m *Machine) { m.Preserved = true }
func stopped(m *Machine)   { m.Stopped = true }
func unseen(m *Machine)    { m.FailedSince = time.Time{} }
func since(minute int) func(*Machine) {
	return func(m *Machine) { m.FailedSince = start.Add(time.Duration(minute) * time.Minute) }
}

func TestDecide(t *testing.T) {
	limits := DefaultLimits()
	limits.Settle, limits.Pause = time.Minute, time.Minute
	two := limits
	two.MaxInFlight = 2
	burning := Fleet{Machines: 10, Unhealthy: 4}
	for _, tc := range []struct {
		name, why string
		// minute is when it is decided.
		minute int
		state  State
		want   Verdict
	}{
		{name: "none there", why: "there is nothing to replace"},
		{
			name: "all well", why: "there is nothing to replace, and nothing to be explained",
			minute: 60, state: State{Machines: []Machine{up("a", 0)}, Fleet: burning},
		}, {
			name: "one failed", why: "it is replaced",
			minute: 60, state: State{Machines: []Machine{up("a", 0), failed("b", 0)}}, want: Verdict{Replace: []string{"b"}},
		}, {
			name: "several failed", why: "one is replaced, the newest",
			minute: 60, state: State{Machines: []Machine{failed("a", 1), failed("b", 3), failed("c", 2)}}, want: Verdict{Replace: []string{"b"}},
		}, {
			name: "several failed, two at once", why: "of those of one age the order is that of the uids",
			minute: 60, state: State{Limits: two, Machines: []Machine{failed("c", 1), failed("b", 1), failed("a", 0)}},
			want: Verdict{Replace: []string{"b", "c"}},
		}, {
			name: "fewer failed than there may go", why: "all of them go",
			minute: 60, state: State{Limits: two, Machines: []Machine{failed("a", 1)}}, want: Verdict{Replace: []string{"a"}},
		}, {
			name: "one has just failed", why: "others may share its fate",
			minute: 60, state: State{Machines: []Machine{failed("a", 0, unseen)}}, want: Verdict{Reason: Settling, Again: time.Minute},
		}, {
			name: "two have just failed", why: "it is looked again when the first is known for long enough",
			minute: 60, state: State{Limits: Limits{Settle: 5 * time.Minute, MaxInFlight: 1}, Machines: []Machine{failed("a", 0, since(58)), failed("b", 1, since(57))}},
			want: Verdict{Reason: Settling, Again: 2 * time.Minute},
		}, {
			name: "one has just failed, another long ago", why: "the newer one is not waited for",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), failed("b", 1, unseen)}}, want: Verdict{Replace: []string{"a"}},
		}, {
			name: "much else is unhealthy", why: "nothing is replaced until it is not",
			minute: 60, state: State{Machines: []Machine{failed("a", 0)}, Fleet: burning}, want: Verdict{Reason: TooManyUnhealthy},
		}, {
			name: "much else is unhealthy, another comes up", why: "that is what is in the way longest",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), coming("b", 59)}, Fleet: burning}, want: Verdict{Reason: TooManyUnhealthy},
		}, {
			name: "one on its way out has failed", why: "it is being replaced already",
			minute: 60, state: State{Machines: []Machine{failed("a", 0, deleting)}},
		}, {
			name: "a preserved one has failed", why: "somebody wants to look at it",
			minute: 60, state: State{Machines: []Machine{failed("a", 0, preserved)}, Fleet: burning},
		}, {
			name: "a preserved one that is new, and an older one", why: "it makes no pause either",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), failed("b", 60, preserved)}}, want: Verdict{Replace: []string{"a"}},
		}, {
			name: "one is missing", why: "it is a replacement, as far as anybody knows",
			minute: 60, state: State{Machines: []Machine{failed("a", 0)}, Missing: 1}, want: Verdict{Reason: InFlight},
		}, {
			name: "another comes up", why: "it may be a replacement, and fail as well",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), coming("b", 55)}}, want: Verdict{Reason: InFlight, Again: 5 * time.Minute},
		}, {
			name: "two others come up", why: "it is looked again when the older one is waited for no longer",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), coming("b", 55), coming("c", 53), coming("d", 54)}},
			want: Verdict{Reason: InFlight, Again: 3 * time.Minute},
		}, {
			name: "another has not come up for long", why: "it stops nothing",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), coming("b", 50)}}, want: Verdict{Replace: []string{"a"}},
		}, {
			name: "another is switched off", why: "it does not come up by itself",
			minute: 60, state: State{Machines: []Machine{failed("a", 0), coming("b", 59, stopped)}}, want: Verdict{Replace: []string{"a"}},
		}, {
			name: "it was only just created", why: "so may its replacement fail",
			minute: 60, state: State{
				Limits:   Limits{MaxInFlight: 1, Pause: 3 * time.Minute, LongestPause: 3 * time.Minute},
				Machines: []Machine{failed("a", 58), failed("b", 0)},
			},
			want: Verdict{Reason: Pausing, Pause: 3 * time.Minute, Again: time.Minute},
		}, {
			name: "it was only just created, another comes up", why: "before the pause is over there is nothing to do",
			minute: 60, state: State{
				Limits:   Limits{MaxInFlight: 1, Pause: 3 * time.Minute, LongestPause: 3 * time.Minute, Startup: time.Hour},
				Machines: []Machine{failed("a", 58), coming("b", 0)},
			},
			want: Verdict{Reason: Pausing, Pause: 3 * time.Minute, Again: time.Minute},
		}, {
			name: "others were replaced in vain", why: "the pause has doubled three times",
			minute: 60, state: State{Machines: []Machine{failed("a", 55)}, Attempts: Attempts{Count: 3}},
			want: Verdict{Reason: Pausing, Pause: 8 * time.Minute, Again: 3 * time.Minute},
		}, {
			name: "others were replaced in vain for hours", why: "the pause does not grow for ever",
			minute: 60, state: State{Machines: []Machine{failed("a", 55)}, Attempts: Attempts{Count: 1 << 30}},
			want: Verdict{Reason: Pausing, Pause: 10 * time.Minute, Again: 5 * time.Minute},
		}, {
			name: "others were replaced in vain, long ago", why: "the pause is over",
			minute: 60, state: State{Machines: []Machine{failed("a", 50)}, Attempts: Attempts{Count: 9}},
			want: Verdict{Replace: []string{"a"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.state.Now = start.Add(time.Duration(tc.minute) * time.Minute)
			if tc.state.Limits == (Limits{}) {
				tc.state.Limits = limits
			}
			if diff := cmp.Diff(tc.want, Decide(tc.state)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.why, diff)
			}
		})
	}
}

// The waits that operators read of in docs/health.md.
func TestDefaultLimits(t *testing.T) {
	want := Limits{
		MaxUnhealthy: intstr.FromString("33%"), MaxInFlight: 1, Startup: 600 * time.Second,
		Settle: 5000 * time.Millisecond, Pause: 10_000 * time.Millisecond, LongestPause: 600 * time.Second,
	}
	if got := DefaultLimits(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAttempts(t *testing.T) {
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	first := Attempts{}.After([]Machine{up("a", 0), failed("b", 2), up("c", 1)})
	for _, tc := range []struct {
		why       string
		got, want Attempts
	}{
		{"the first counts from the newest there was", first, Attempts{1, minute(2)}},
		{"the second counts on", first.After([]Machine{up("a", 0), failed("d", 3)}), Attempts{2, minute(3)}},
		{"and never back", first.After([]Machine{failed("a", 0)}), Attempts{2, minute(2)}},
		{"those of before say nothing", first.Seen([]Machine{up("a", 0), up("e", 2)}), first},
		{"nor does one that has not come up", first.Seen([]Machine{coming("d", 3)}), first},
		{"one that has come up ends it", first.Seen([]Machine{failed("a", 0), up("d", 3)}), Attempts{}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.why, diff)
		}
	}
}
