package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
)

// What core may write for a Machine until it runs, and until it is gone: the budget that the
// architecture promises.
const (
	budgetUp   = 11 // two for its bootstrap token, two to approve its certificates
	budgetDown = 5
)

// settling is the longest that core waits before it writes what has come to rest: the status of its
// drivers, which it writes at most every 5 s; the counts of a MachineDeployment follow their
// Machines within milliseconds.
const settling = 6 * time.Second

// How much a Machine costs, from the audit log. Times are reported; only a broken promise about
// writes fails.
func TestOPS9_WritesPerMachine(t *testing.T) {
	t.Parallel()
	const machines = 40
	u := newUser(t)
	start := time.Now()
	u.apply(deployment("counted", machines, nil))
	u.awaitRunning(machines)
	up := time.Since(start)
	u.awaitQuiet(settling)
	writesUp := u.writes(start)

	settled := time.Now()
	idle := u.writesIn(settled, 10*time.Second)

	start = time.Now()
	u.kubectl("delete", "machinedeployment", "counted", "--wait=false")
	u.awaitGone()
	writesDown := u.writes(start)
	t.Logf("%d machines Running in %s, gone in %s; writes per machine %.2f up, %.2f down; %d idle in 10 s",
		machines, up.Round(time.Millisecond), time.Since(start).Round(time.Millisecond),
		perMachine(writesUp, machines), perMachine(writesDown, machines), idle.Budgeted())
	t.Logf("up:\n%sdown:\n%sidle:\n%s", writesUp, writesDown, idle)
	if perMachine(writesUp, machines) > budgetUp || perMachine(writesDown, machines) > budgetDown {
		t.Errorf("more writes per machine than %d up and %d down", budgetUp, budgetDown)
	}
	if idle.Budgeted() > 0 {
		t.Errorf("an idle fleet is written to:\n%s", idle)
	}
}

func perMachine(writes audit.Writes, machines int) float64 {
	return float64(writes.Budgeted()) / float64(machines)
}

// writes counts what the manager has written since an instant.
func (u *user) writes(since time.Time) audit.Writes {
	u.t.Helper()
	writes, err := audit.CountFile(u.AuditLogPath(), stack.ManagerUser, since)
	if err != nil {
		u.t.Fatal(err)
	}
	return writes
}

// awaitQuiet waits until nothing that counts against the budget has been written for a while.
func (u *user) awaitQuiet(long time.Duration) {
	u.t.Helper()
	began := time.Now()
	eventually(u.t, "nothing is written for "+long.String(), func(context.Context) error {
		if rest := long - time.Since(began); rest > 0 {
			return fmt.Errorf("%s are left", rest)
		}
		if writes := u.writes(time.Now().Add(-long)); writes.Budgeted() > 0 {
			return fmt.Errorf("written:\n%s", writes)
		}
		return nil
	})
}

// writesIn counts what the manager writes within a while from an instant on.
func (u *user) writesIn(since time.Time, long time.Duration) audit.Writes {
	u.t.Helper()
	<-time.After(time.Until(since.Add(long)))
	return u.writes(since)
}
