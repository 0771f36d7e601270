package lifecycle

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Silence is for how long nothing has been heard of a Node's kubelet, though it could have been.
type Silence struct {
	// Since is what Clock.Nodes showed when it began.
	Since time.Duration
	// Renewed is what the Node's Lease said then; the silence ends when it says anything else.
	Renewed time.Time
}

// unreachable says whether nothing has been heard of the Node's kubelet for so long that it counts
// as gone, given what a pass of the drain found. That a Node is called silent proves nothing by
// itself: node-lifecycle says so of Nodes that live, after an outage of the API server, until their
// kubelets have renewed their Leases.
func (p *plan) unreachable(d *Drain) bool {
	if !d.Silent {
		p.Memory.Silence = nil
		return false
	}
	if p.isInstanceGone() {
		return true
	}
	if d.Unread != "" {
		return false
	}
	s := p.Memory.Silence
	if s == nil || !s.Renewed.Equal(d.Renewed) {
		s = &Silence{Since: p.Clock.Nodes, Renewed: d.Renewed}
		p.Memory.Silence = s
	}
	return p.Clock.Nodes-s.Since >= p.Machine.UnreachableAfter
}

// isInstanceGone says whether the VM is known to be gone: a silent kubelet's pods have ended with
// it.
func (p *plan) isInstanceGone() bool {
	return p.view().looks >= confirmations ||
		p.status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceMissing
}

// withSilence adds to a message about pods that are waited for that the Node's kubelet does not
// report.
func (p *plan) withSilence(d *Drain) string {
	switch {
	case !d.Silent:
		return ""
	case d.Unread != "":
		return " Its kubelet does not report, and whether it still lives cannot be read: " + d.Unread
	}
	return fmt.Sprintf(" Its kubelet does not report. They are no longer waited for once that has lasted %s in which other Nodes report.",
		p.Machine.UnreachableAfter)
}
