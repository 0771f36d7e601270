package judge

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// A server for which there was no host is taken back, and is nobody's then. The machine's next one
// is its first. One that keeps its marks was the machine's.
func TestAServerThatWasTakenBackIsNoVM(t *testing.T) {
	for name, taken := range map[string]bool{"taken back": true, "deleted": false} {
		h := newHistory()
		h.setDeployment(1, 1, 0)
		h.makeMachineOf("old", "a")
		h.makeVM("first", "a")
		j := New(Options{Core: manager, ClusterUID: cluster, Foreign: []string{foreignThing}, Resources: oneVM, Patience: 2 * time.Second})
		if broken := j.Judge(h.end()); len(broken) > 0 {
			t.Fatalf("it breaks %v", broken)
		}
		h.History = History{}
		h.vms["first"] = proto.CloneOf(h.vms["first"])
		h.endVM("first")
		if taken {
			h.vms["first"].ClusterUid, h.vms["first"].MachineUid = "", ""
		}
		h.VMs = append(h.VMs, h.vms["first"])
		h.makeVM("second", "a")
		if broken := j.Judge(h.end()); (len(broken) == 0) != taken {
			t.Errorf("%s: it breaks %v", name, broken)
		}
	}
}
