package surge

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// setOf returns a set of that size whose MachineDeployment may have most Machines, and the names of
// its Machines that the cache shows.
func setOf(name string, replicas int32, most string, machines ...string) Sibling {
	set := &clusterv1alpha1.MachineSet{}
	set.Name, set.UID, set.ResourceVersion, set.Spec.Replicas = name, types.UID(name), "7", &replicas
	set.Annotations = map[string]string{clusterv1alpha1.MaxReplicasAnnotation: most}
	return Sibling{Set: set, Machines: named(machines...)}
}

func TestRoomIsWhatTheDeploymentMayHaveAndNoSetHolds(t *testing.T) {
	for _, tc := range []struct {
		name, why string
		// most is how many Machines the deployment may have; the set has a size of 3.
		most     string
		siblings []Sibling
		want     Room
	}{
		{name: "no sibling", most: "4", why: "one of 4 is left", want: Room{Spare: 1, Bound: 4}},
		{
			name: "a sibling with Machines", most: "6", why: "it holds those it has",
			siblings: []Sibling{setOf("old", 1, "6", "old-0", "old-1")}, want: Room{Spare: 1, Siblings: 2, Bound: 6},
		},
		{
			name: "a sibling that is yet to create Machines", most: "6", why: "it may create them without being asked again",
			siblings: []Sibling{setOf("old", 2, "6")}, want: Room{Spare: 1, Bound: 6},
		},
		{
			name: "siblings that hold too many", most: "4", why: "less than nothing is nothing",
			siblings: []Sibling{setOf("old", 5, "4")}, want: Room{Bound: 4},
		},
		{
			name: "a limit that nobody can read", most: "many", why: "what nobody can tell is not to spare",
			siblings: []Sibling{setOf("old", 1, "6")}, want: Room{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var account *Account
			if got := account.Room(setOf("new", 3, tc.most).Set, 3, tc.siblings); got != tc.want {
				t.Errorf("Room() = %+v, want %+v: %s", got, tc.want, tc.why)
			}
		})
	}
	if got, want := Alone(3), (Room{Spare: 1, Bound: 4}); got != want {
		t.Errorf("Alone(3) = %+v, want %+v", got, want)
	}
}

func TestRoomCountsWhatTheCacheDoesNotShowYet(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	set := setOf("new", 3, "9").Set
	sibling := setOf("old", 1, "9", "old-0")
	for _, tc := range []struct {
		name   string
		record func(*Account)
		want   Room
	}{
		{"nothing is recorded", func(*Account) {}, Room{Spare: 5, Siblings: 1, Bound: 9}},
		{"a sibling's Machine that the cache does not show", func(a *Account) { a.AddMachine("old", "old-1") }, Room{Spare: 4, Siblings: 1, Bound: 9}},
		{"a sibling's Machine that the cache shows", func(a *Account) { a.AddMachine("old", "old-0") }, Room{Spare: 5, Siblings: 1, Bound: 9}},
		{"a size that a sibling does not show", func(a *Account) { a.SetSize("old", "7", Size{Replicas: 4, Max: 9}) }, Room{Spare: 2, Siblings: 1, Bound: 9}},
		{"a size that a sibling shows", func(a *Account) { a.SetSize("old", "6", Size{Replicas: 4, Max: 9}) }, Room{Spare: 5, Siblings: 1, Bound: 9}},
		{"a set that the cache does not show", func(a *Account) { a.SetSize("made", "1", Size{Replicas: 2, Max: 9}) }, Room{Spare: 3, Siblings: 1, Bound: 9}},
		{"another limit for the set itself", func(a *Account) { a.SetSize("new", "7", Size{Replicas: 3, Max: 5}) }, Room{Spare: 1, Siblings: 1, Bound: 5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock.SetTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			account := NewAccounts(clock).Lock(deploymentKey, "1")
			defer account.Unlock()
			tc.record(account)
			if got := account.Room(set, 3, []Sibling{sibling}); got != tc.want {
				t.Errorf("Room() = %+v, want %+v", got, tc.want)
			}
			clock.SetTime(clock.Now().Add(Expiry))
			if got, want := account.Room(set, 3, []Sibling{sibling}), (Room{Spare: 5, Siblings: 1, Bound: 9}); got != want {
				t.Errorf("when no request can be under way any more, Room() = %+v, want %+v", got, want)
			}
		})
	}
}

// A set learns with its next size what its deployment wants at most. Until then it has no more room
// than both leave it.
func TestRoomFollowsWhatTheDeploymentWantsNow(t *testing.T) {
	for most, want := range map[int]int{0: 4, 5: 2, 2: 0, 9: 4} {
		account := NewAccounts(clocktesting.NewFakePassiveClock(time.Now())).Lock(types.NamespacedName{Name: "md"}, "uid")
		account.SetMost(most)
		if got := account.Room(setOf("old", 3, "7").Set, 3, nil); got != (Room{Spare: want, Bound: 7}) {
			t.Errorf("wanted are %d at most: %+v, want %d to spare", most, got, want)
		}
	}
}
