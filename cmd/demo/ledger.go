package demo

import (
	"context"
	"fmt"
	"os"

	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// totals are what a cloud has made, and what of it is left.
type totals struct{ created, deleted, left int64 }

// ledger knows the VMs of a cloud. A test cloud keeps its own; of VMs of QEMU, each has a folder
// for as long as it is there.
type ledger struct {
	stack *stack.Stack
	ever  map[string]bool // folders
}

func newLedger(s *stack.Stack) *ledger { return &ledger{stack: s, ever: map[string]bool{}} }

// look notes which folders there are, and returns how many. Look more often than VMs come and go.
func (l *ledger) look() int {
	if l.stack.VMs() == "" {
		return 0
	}
	folders, _ := os.ReadDir(l.stack.VMs()) // the driver makes it before its first VM
	for _, f := range folders {
		l.ever[f.Name()] = true
	}
	return len(folders)
}

// totals returns what there is to judge at the end.
func (l *ledger) totals(ctx context.Context) (totals, error) {
	if l.stack.VMs() != "" {
		left := int64(l.look())
		created := int64(len(l.ever))
		return totals{created: created, deleted: created - left, left: left}, nil
	}
	t, err := l.stack.Backend().GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		return totals{}, fmt.Errorf("read the cloud's ledger: %w", err)
	}
	return totals{created: t.GetVmsCreated(), deleted: t.GetVmsDeleted(), left: t.GetResourcesLeft()}, nil
}
