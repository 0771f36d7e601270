package poller

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
)

// testPolling are core's defaults.
var testPolling = Polling{
	Interval: time.Second, MaxInterval: 10 * time.Second, SettledInterval: time.Minute, Handful: 4, PageSize: 500,
}

func machine(name string) wire.Machine {
	return wire.Machine{Namespace: "ns", Name: name, UID: "uid-" + name, Spec: []byte(`{"size":"s"}`)}
}

func machines(n int) []wire.Machine {
	var all []wire.Machine
	for i := range n {
		all = append(all, machine(fmt.Sprintf("m%04d", i)))
	}
	return all
}

func testSchedule() *schedule {
	return newSchedule(testPolling)
}

// seconds lists when a lone machine is polled, in seconds after it was tracked, if each poll finds
// what find says.
func seconds(w *schedule, canList bool, count int, find func(int) poll) []int {
	var at []int
	now := epoch
	for len(at) < count {
		batches, next := w.due(now, canList)
		if len(batches) == 0 {
			now = next
			continue
		}
		l := find(len(at))
		l.began, l.ended, l.oneByOne = now, now, !batches[0].list
		at = append(at, int(now.Sub(epoch)/time.Second))
		w.recordPoll(batches[0].machine.UID, l)
		w.endList(batches[0].account, now)
	}
	return at
}

func TestWhenAMachineIsPolled(t *testing.T) {
	creating := func(int) poll { return poll{instance: &instance.Instance{State: instance.Creating}} }
	for _, test := range []struct {
		name string
		pace instance.PollInterval
		// canList says whether the driver can list.
		canList bool
		find    func(int) poll
		want    []int
	}{
		{"alone it backs off while nothing changes", instance.PollPending, false, creating, []int{1, 2, 4, 8, 16, 26, 36}},
		{"a change is followed closely", instance.PollPending, false, func(n int) poll {
			return poll{instance: &instance.Instance{State: instance.Creating, Message: fmt.Sprint(n)}}
		}, []int{1, 2, 3, 4}},
		{"poll_after makes it rarer", instance.PollPending, false, func(int) poll {
			return poll{instance: &instance.Instance{State: instance.Creating, PollAfter: 7 * time.Second}}
		}, []int{1, 8, 15, 22, 30}},
		{"so does RetryInfo", instance.PollPending, false, func(int) poll {
			return poll{failure: &instance.Failure{Class: instance.RateLimited, RetryAfter: 30 * time.Second}}
		}, []int{1, 31, 61}},
		{"settled and not listed, it costs a call of its own, so rarely", instance.PollSettled, false, creating, []int{1, 301, 601}},
		{"settled and listed, each settled interval", instance.PollSettled, true, creating, []int{1, 61, 121}},
		{"alone it backs off where the driver lists, too", instance.PollPending, true, creating, []int{1, 2, 4, 8, 16, 26, 36}},
		{"a failed look is repeated, ever later", instance.PollSettled, false, func(int) poll {
			return poll{failure: &instance.Failure{Class: instance.Internal}}
		}, []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 812}},
		{"absence is confirmed soon, whatever the pace", instance.PollSettled, false, func(int) poll {
			return poll{failure: &instance.Failure{Class: instance.NotFound}}
		}, []int{1, 2, 302}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := testSchedule()
			w.track(machine("a"), test.pace, epoch, time.Time{})
			if diff := cmp.Diff(test.want, seconds(w, test.canList, len(test.want), test.find)); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettledFleetOfTwoIsPolledByOneList(t *testing.T) {
	w := testSchedule()
	for _, m := range machines(2) {
		w.track(m, instance.PollSettled, epoch, time.Time{})
	}
	now := epoch.Add(time.Second)
	for n := range 3 {
		first, _ := w.due(now, true)
		if len(first) != 1 || !first[0].list {
			t.Fatalf("poll %d: %+v, want one list", n, first)
		}
		for _, m := range machines(2) {
			w.recordPoll(m.UID, poll{began: now, ended: now, instance: &instance.Instance{State: instance.Running}})
		}
		w.endList(first[0].account, now)
		more, next := w.due(now, true)
		if len(more) != 0 || next.Sub(now) != time.Minute {
			t.Fatalf("poll %d: %+v follow, the next %v later, want it a minute later", n, more, next.Sub(now))
		}
		now = next
	}
}

func TestMachinesThatWaitForAListArePolledOneByOneWhenItIsNotImplemented(t *testing.T) {
	w := testSchedule()
	for _, m := range machines(2) {
		w.track(m, instance.PollSettled, epoch, time.Time{})
	}
	now := epoch.Add(time.Second)
	if first, _ := w.due(now, true); len(first) != 1 || !first[0].list {
		t.Fatalf("%+v, want one list", first)
	}
	if beside, next := w.due(now, true); len(beside) != 0 || !next.IsZero() {
		t.Fatalf("beside the list: %+v at %v, want nothing", beside, next)
	}
	w.endList(machine("a").Account(), now)
	if alone, _ := w.due(now, false); len(alone) != 2 || alone[0].list || alone[1].list {
		t.Errorf("%+v, want both polled one by one", alone)
	}
}

// TestQueueHoldsWhatIsNeitherDueNorInFlight checks the queue against a scan of all machines, over
// any history of calls.
func TestQueueHoldsWhatIsNeitherDueNorInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, now := testSchedule(), epoch
		all := machines(8)
		for i := range all {
			all[i].Spec = fmt.Appendf(nil, `{"account":%d}`, i%2)
		}
		pick := func() wire.Machine { return rapid.SampledFrom(all).Draw(t, "machine") }
		result := func() poll {
			return poll{
				began: now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second), ended: now,
				oneByOne: rapid.Bool().Draw(t, "one by one"), instance: &instance.Instance{State: instance.Running},
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"track": func(t *rapid.T) {
				w.track(pick(), rapid.SampledFrom([]instance.PollInterval{instance.PollPending, instance.PollSettled}).Draw(t, "pace"), now, time.Time{})
			},
			"untrack": func(*rapid.T) { w.untrack(pick().UID) },
			"call":    func(*rapid.T) { w.calls[pick().UID] = struct{}{} },
			"found":   func(*rapid.T) { w.recordPoll(pick().UID, result()) },
			"lost":    func(*rapid.T) { w.recordLost(pick().UID, now) },
			"endList": func(*rapid.T) { w.endList(pick().Account(), now) },
			"missing": func(*rapid.T) {
				w.takeMissing(pick().Account(), map[string]struct{}{all[0].UID: {}}, now)
			},
			"due": func(t *rapid.T) {
				w.due(now, rapid.Bool().Draw(t, "can list"))
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) { checkQueue(t, w, now) },
		})
	})
}

// checkQueue fails unless each machine is in exactly one place: queued, waiting for its account, or
// in flight. due must return no earlier instant than a scan would.
func checkQueue(t *rapid.T, w *schedule, now time.Time) {
	waiting := 0
	for uid, m := range w.machines {
		queued := m.index >= 0 && m.index < len(w.queue) && w.queue[m.index] == m
		l := w.accounts[m.account]
		_, waits := l.waiting[m.interval][uid]
		if waits {
			waiting++
		}
		places := 0
		for _, is := range []bool{queued, waits, m.inFlight} {
			if is {
				places++
			}
		}
		if places != 1 || waits && m.due.After(now) || l.members[uid] != m {
			t.Fatalf("%s: queued %t, waits %t, in flight %t", uid, queued, waits, m.inFlight)
		}
	}
	total := 0
	for a, l := range w.accounts {
		in := len(l.waiting[instance.PollPending]) + len(l.waiting[instance.PollSettled])
		if _, marked := w.waiting[a]; marked != (in > 0) {
			t.Fatalf("account %d: %d wait, marked %t", a, in, marked)
		}
		total += in
	}
	if total != waiting || len(w.queue) > len(w.machines) {
		t.Fatalf("%d wait, want %d; %d of %d are queued", total, waiting, len(w.queue), len(w.machines))
	}
	for i := range w.queue {
		if up := (i - 1) / 2; i > 0 && w.queue[i].due.Before(w.queue[up].due) {
			t.Fatalf("the queue is out of order at %d", i)
		}
	}
}

func TestFirstPollWaitsAsLongAsTheLastAnswerAsked(t *testing.T) {
	w := testSchedule()
	w.track(machine("a"), instance.PollPending, epoch, epoch.Add(9*time.Second))
	if got, want := w.machines[machine("a").UID].due, epoch.Add(9*time.Second); !got.Equal(want) {
		t.Errorf("due at %v, want %v", got, want)
	}
}

func TestAQuickerPaceTakesEffectAtOnce(t *testing.T) {
	w := testSchedule()
	w.track(machine("a"), instance.PollSettled, epoch, time.Time{})
	seconds(w, true, 1, func(int) poll { return poll{instance: &instance.Instance{State: instance.Running}} })
	later := epoch.Add(20 * time.Second)
	w.track(machine("a"), instance.PollPending, later, time.Time{})
	if due := w.machines[machine("a").UID].due; due.After(later) {
		t.Errorf("due at %v, want at once", due)
	}
	w.track(machine("a"), instance.PollSettled, later, time.Time{})
	if due := w.machines[machine("a").UID].due; due.After(later) {
		t.Errorf("a slower pace moved the look that is due to %v", due)
	}
}

func TestAnAccountThatHangsHoldsUpNobody(t *testing.T) {
	w := testSchedule()
	for i, m := range machines(12) {
		m.Spec = fmt.Appendf(nil, `{"account":%d}`, i%2)
		w.track(m, instance.PollPending, epoch, time.Time{})
	}
	now := epoch.Add(time.Second)
	first, next := w.due(now, true)
	if len(first) != 1 || !first[0].list {
		t.Fatalf("first: %+v, want one list, which may show the other account's machines too", first)
	}
	second, _ := w.due(next, true)
	if len(second) != 1 || second[0].account == first[0].account || next.Sub(now) != time.Second {
		t.Errorf("after %v: %+v, want the other account's list", next.Sub(now), second)
	}
	third, _ := w.due(now.Add(time.Minute), true)
	if len(third) != 0 {
		t.Errorf("beside the lists under way: %+v, want nothing", third)
	}
}

func TestOneListServesAllAccountsWhoseMachinesItShows(t *testing.T) {
	w := testSchedule()
	for i, m := range machines(12) {
		m.Spec = fmt.Appendf(nil, `{"flavor":%d}`, i%2)
		w.track(m, instance.PollPending, epoch, time.Time{})
	}
	now := epoch.Add(time.Second)
	first, _ := w.due(now, true)
	for _, m := range machines(12) {
		w.recordPoll(m.UID, poll{began: now, ended: now, instance: &instance.Instance{State: instance.Creating}})
	}
	w.endList(first[0].account, now)
	if more, _ := w.due(now, true); len(more) != 0 {
		t.Errorf("after a list of everybody: %+v, want nothing", more)
	}
}

func TestAListThatTookLongIsFollowedByARest(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		50 * time.Millisecond: time.Second,
		time.Second:           5 * time.Second,
		20 * time.Second:      30 * time.Second,
	} {
		w := testSchedule()
		for _, m := range machines(12) {
			w.track(m, instance.PollPending, epoch, time.Time{})
		}
		began := epoch.Add(time.Second)
		ended := began.Add(took)
		first, _ := w.due(began, true)
		w.endList(first[0].account, ended.Add(w.restAfter(poll{began: began, ended: ended})))
		early, next := w.due(ended, true)
		if len(early) != 0 || next.Sub(began) != want {
			t.Errorf("after a list of %v: %+v, the next %v after it began, want it after %v", took, early, next.Sub(began), want)
		}
		if again, _ := w.due(next, true); len(again) != 1 || !again[0].list {
			t.Errorf("after a list of %v and its rest: %+v, want a list", took, again)
		}
	}
}

func TestPollsThatComeLateAreDropped(t *testing.T) {
	w := testSchedule()
	m := machine("a")
	w.track(m, instance.PollPending, epoch, time.Time{})
	newer := poll{began: epoch.Add(2), ended: epoch.Add(2), instance: &instance.Instance{State: instance.Running}}
	older := poll{began: epoch.Add(1), ended: epoch.Add(3), instance: &instance.Instance{State: instance.Creating}, oneByOne: true}
	if !w.recordPoll(m.UID, newer) || w.recordPoll(m.UID, older) {
		t.Error("an older poll counts as a change, or a newer one does not")
	}
	if got, _ := w.observed(m.UID); got.Instance.State != instance.Running {
		t.Errorf("state %s, want the newer look's", got.Instance.State)
	}
	w.untrack(m.UID)
	w.untrack(m.UID)
	w.recordLost(m.UID, epoch)
	if w.recordPoll(m.UID, newer) || len(w.accounts) != 0 {
		t.Error("something is left of a machine that is not tracked any more")
	}
}

// A poll beside a call can see more than the call's answer tells. The machine does not believe it,
// and hears it from the next one.
func TestWhatAnAnswerHidIsToldAgain(t *testing.T) {
	at := func(second int) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
	deleting, rest := &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}, &instance.Instance{State: instance.Failed}
	for name, test := range map[string]struct {
		beside poll
		after  *instance.Instance
		want   bool
	}{
		"ended before the answer":    {poll{began: at(2), ended: at(3), instance: rest}, rest, true},
		"ended after the answer":     {poll{began: at(2), ended: at(6), instance: rest}, rest, true},
		"saw what was answered":      {poll{began: at(2), ended: at(3), instance: deleting}, deleting, false},
		"the answer came to be true": {poll{began: at(2), ended: at(3), instance: &instance.Instance{State: instance.Running}}, deleting, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := testSchedule()
			m := machine("a")
			w.track(m, instance.PollPending, at(0), time.Time{})
			answer := func() {
				w.recordPoll(m.UID, poll{began: at(1), ended: at(4), instance: deleting})
				w.recordAnswer(m.UID, at(4), deleting)
			}
			if test.beside.ended.Before(at(4)) {
				w.recordPoll(m.UID, test.beside)
				answer()
			} else {
				answer()
				w.recordPoll(m.UID, test.beside)
			}
			if got := w.recordPoll(m.UID, poll{began: at(7), ended: at(8), instance: test.after}); got != test.want {
				t.Errorf("the first poll after the answer counts as a change: %t, want %t", got, test.want)
			}
			if w.recordPoll(m.UID, poll{began: at(9), ended: at(10), instance: test.after}) {
				t.Error("the second poll after the answer counts as a change")
			}
		})
	}
}
