package surge

import (
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

var deploymentKey = types.NamespacedName{Namespace: "default", Name: "nodes"}

func named(names ...string) []*clusterv1alpha1.Machine {
	var machines []*clusterv1alpha1.Machine
	for _, name := range names {
		machines = append(machines, &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return machines
}

func TestRecordedMachinesCountUntilTheCacheShowsThem(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	start := clock.Now()
	accounts := NewAccounts(clock)
	account := accounts.Lock(deploymentKey, "1")
	for _, name := range []string{"a-1", "a-2", "a-3"} {
		account.AddMachine("a", name)
	}
	account.AddMachine("b", "b-1")
	account.RemoveMachine("a", "a-3")
	account.Unlock()

	account = accounts.Lock(deploymentKey, "1")
	if n, left := account.UnseenMachines("a", named("a-0")); n != 2 || left != Expiry {
		t.Errorf("%d of a are unseen, for %s, want 2", n, left)
	}
	if n, _ := account.UnseenMachines("a", named("a-1")); n != 1 {
		t.Errorf("%d of a are unseen, want 1", n)
	}
	if n, _ := account.UnseenMachines("a", nil); n != 1 {
		t.Errorf("one that was seen and is gone counts again: %d", n)
	}
	account.AddMachine("c", "c-1")
	account.RemoveMachines("c")
	if n, _ := account.UnseenMachines("c", nil); n != 0 {
		t.Errorf("%d of c are unseen, and all were seen", n)
	}
	account.SetSize("set", "7", Size{Replicas: 1})
	clock.SetTime(start.Add(Expiry))
	if n, left := account.UnseenMachines("b", nil); n != 0 || left != 0 {
		t.Errorf("%d of b are waited for still, for %s", n, left)
	}
	account.Unlock()
	if len(account.machines)+len(account.sizes) > 0 {
		t.Errorf("what was done long ago is remembered: %v, %v", account.machines, account.sizes)
	}
}

func TestAccountIsOfOneDeployment(t *testing.T) {
	accounts := NewAccounts(clocktesting.NewFakePassiveClock(time.Now()))
	for _, tc := range []struct {
		why    string
		forget bool
		uid    types.UID
	}{
		{"it was deleted", true, "1"},
		{"it was made again under its name", false, "2"},
	} {
		account := accounts.Lock(deploymentKey, "1")
		account.AddMachine("a", "a-1")
		account.Unlock()
		if tc.forget {
			accounts.Forget(deploymentKey)
		}
		account = accounts.Lock(deploymentKey, tc.uid)
		if n, _ := account.UnseenMachines("a", nil); n != 0 {
			t.Errorf("%d are remembered: %s", n, tc.why)
		}
		account.Unlock()
	}
}

func TestRecordedSizeCountsUntilTheCacheShowsIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	start := clock.Now()
	account := NewAccounts(clock).Lock(deploymentKey, "1")
	defer account.Unlock()
	want := Size{Replicas: 3, Max: 4}
	for _, tc := range []struct {
		name, why, before, cached string
		later                     time.Duration
		known                     bool
	}{
		{name: "the cache shows the version that was changed", why: "it does not show the change", before: "7", cached: "7", known: true},
		{name: "the cache shows an older one", why: "it does not show the change", before: "7", cached: "5", known: true},
		{name: "the cache shows the change", why: "it may show later ones, too", before: "7", cached: "8"},
		{name: "nothing comes of it", why: "the answer was lost, and so was the request", before: "7", cached: "7", later: Expiry},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock.SetTime(start)
			account.SetSize("set", tc.before, want)
			clock.SetTime(start.Add(tc.later))
			if got, known := account.UnseenSize("set", tc.cached); known != tc.known || known && got != want {
				t.Errorf("UnseenSize() = %v, %v: %s", got, known, tc.why)
			}
		})
	}
}

func TestOnlyOneHoldsAnAccount(t *testing.T) {
	accounts := NewAccounts(clocktesting.NewFakePassiveClock(time.Now()))
	holders, n := 0, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			account := accounts.Lock(deploymentKey, "1")
			defer account.Unlock()
			holders++
			n = max(n, holders)
			holders--
		})
	}
	all.Wait()
	if n != 1 {
		t.Errorf("%d held the account at once", n)
	}
}
