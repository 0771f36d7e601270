package fleet

import (
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

var deploymentKey = types.NamespacedName{Namespace: "default", Name: "nodes"}

func is(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func named(names ...string) []clusterv1alpha1.Machine {
	machines := make([]clusterv1alpha1.Machine, len(names))
	for i, name := range names {
		machines[i].Name = name
	}
	return machines
}

func TestRoomKnowsWhatTheCacheDoesNotShow(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	start := clock.Now()
	rooms := NewRooms(clock)
	room := rooms.Enter(deploymentKey, "1")
	for _, name := range []string{"a-1", "a-2", "a-3"} {
		room.Made("a", name)
	}
	room.Made("b", "b-1")
	room.NotMade("a", "a-3")
	room.Leave()

	room = rooms.Enter(deploymentKey, "1")
	if n, left := room.Unseen("a", named("a-0")); n != 2 || left != RoomMemory {
		t.Errorf("%d of a are unseen, for %s, want 2", n, left)
	}
	if n, _ := room.Unseen("a", named("a-1")); n != 1 {
		t.Errorf("%d of a are unseen, want 1", n)
	}
	if n, _ := room.Unseen("a", nil); n != 1 {
		t.Errorf("one that was seen and is gone counts again: %d", n)
	}
	room.Made("c", "c-1")
	room.Seen("c")
	if n, _ := room.Unseen("c", nil); n != 0 {
		t.Errorf("%d of c are unseen, and all were seen", n)
	}
	room.Sized("set", "7", Size{Replicas: 1})
	clock.SetTime(start.Add(RoomMemory))
	if n, left := room.Unseen("b", nil); n != 0 || left != 0 {
		t.Errorf("%d of b are waited for still, for %s", n, left)
	}
	room.Leave()
	if len(room.made)+len(room.sized) > 0 {
		t.Errorf("what was done long ago is remembered: %v, %v", room.made, room.sized)
	}
}

func TestRoomIsOfOneDeployment(t *testing.T) {
	rooms := NewRooms(clocktesting.NewFakePassiveClock(time.Now()))
	for _, tc := range []struct {
		why    string
		forget bool
		uid    types.UID
	}{
		{"it was deleted", true, "1"},
		{"it was made again under its name", false, "2"},
	} {
		room := rooms.Enter(deploymentKey, "1")
		room.Made("a", "a-1")
		room.Leave()
		if tc.forget {
			rooms.Forget(deploymentKey)
		}
		room = rooms.Enter(deploymentKey, tc.uid)
		if n, _ := room.Unseen("a", nil); n != 0 {
			t.Errorf("%d are remembered: %s", n, tc.why)
		}
		room.Leave()
	}
}

func TestRoomKnowsSizesThatTheCacheDoesNotShow(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	start := clock.Now()
	room := NewRooms(clock).Enter(deploymentKey, "1")
	defer room.Leave()
	want := Size{Replicas: 3, Most: 4}
	for _, tc := range []struct {
		name, why, before, cached string
		later                     time.Duration
		known                     bool
	}{
		{name: "the cache shows the version that was changed", why: "it does not show the change", before: "7", cached: "7", known: true},
		{name: "the cache shows an older one", why: "it does not show the change", before: "7", cached: "5", known: true},
		{name: "the cache shows the change", why: "it may show later ones, too", before: "7", cached: "8"},
		{name: "a set that was made is in the cache", why: "it shows its size", cached: "8"},
		{name: "nothing comes of it", why: "the answer was lost, and so was the request", before: "7", cached: "7", later: RoomMemory},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock.SetTime(start)
			room.Sized("set", tc.before, want)
			clock.SetTime(start.Add(tc.later))
			if got, known := room.Given("set", tc.cached); known != tc.known || known && got != want {
				t.Errorf("Given() = %v, %v: %s", got, known, tc.why)
			}
		})
	}
}

func TestRoomCountsSetsThatTheCacheDoesNotShow(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	room := NewRooms(clock).Enter(deploymentKey, "1")
	defer room.Leave()
	room.Sized("old", "7", Size{Replicas: 5})
	room.Sized("made", "", Size{Replicas: 2})
	room.Sized("made too", "", Size{Replicas: 1})
	room.Sized("made and sized", "9", Size{Replicas: 4})
	if n := room.Unlisted(is("old")); n != 7 {
		t.Errorf("sets that are not listed have %d, want 7", n)
	}
	if n := room.Unlisted(is("old", "made", "made and sized")); n != 1 {
		t.Errorf("sets that are not listed have %d, want 1", n)
	}
	if size, ok := room.Given("made and sized", "9"); !ok || size.Replicas != 4 {
		t.Errorf("what the cache shows of a set that was just sized is taken for its size: %v, %t", size, ok)
	}
	clock.SetTime(clock.Now().Add(RoomMemory))
	if n := room.Unlisted(is("old")); n != 0 {
		t.Errorf("a set that never came counts %d", n)
	}
}

func TestOnlyOneIsInARoom(t *testing.T) {
	rooms := NewRooms(clocktesting.NewFakePassiveClock(time.Now()))
	inside, n := 0, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			room := rooms.Enter(deploymentKey, "1")
			defer room.Leave()
			inside++
			n = max(n, inside)
			inside--
		})
	}
	all.Wait()
	if n != 1 {
		t.Errorf("%d were in the room at once", n)
	}
}
