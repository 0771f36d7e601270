package lifecycle

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Whose VM spec.providerID names. Anybody who may create a Machine can write any id there, and name
// any Node of the cluster by it. So an id counts once the driver has given it, asked by the
// machine's uid, namespace and name: as the answer to a create, or to a look. See docs/adr/0017.
// Until then the driver is told no id and the machine has no Node.

// takenPause lies between two looks at whether another machine still has the uid.
const takenPause = time.Minute

// Confirmed says whether spec.providerID is the machine's, by the driver's word. What the driver
// said last counts most.
func (s State) Confirmed() bool {
	id := s.Machine.ProviderID
	if id == "" || s.Machine.UIDTaken != "" {
		return false
	}
	if vm := s.named(); vm != nil {
		return vm.Has(id)
	}
	return s.Memory.Contradicted != id && (s.Memory.Confirmed == id || s.Machine.Status.names(id))
}

// named is the VM that the driver has named last; nil where nothing is known that is as new as what
// was remembered of that.
func (s State) named() *instance.Instance {
	v := s.view()
	if v.instance == nil || v.instance.ProviderID == "" || v.at.Before(s.Memory.NamedAt) {
		return nil
	}
	return v.instance
}

// KnownIDs are the ids under which the VM is known: first the one that the driver gave it, which is
// the one to tell the driver, then all others that a Node of it may have. There is none until the
// driver has confirmed one.
func (s State) KnownIDs() []string {
	if !s.Confirmed() {
		return nil
	}
	ids := append([]string{s.Machine.Status.ProviderID}, s.Machine.Status.ProviderIDAliases...)
	if vm := s.named(); vm != nil {
		ids = append([]string{vm.ProviderID}, vm.ProviderIDAliases...)
	}
	if ids[0] == "" {
		ids = nil
	}
	if !slices.Contains(ids, s.Machine.ProviderID) {
		ids = append(ids, s.Machine.ProviderID)
	}
	return ids
}

// names says whether id was written down as the VM's.
func (s Status) names(id string) bool {
	return s.ProviderID != "" && (id == s.ProviderID || slices.Contains(s.ProviderIDAliases, id))
}

// confirmProviderID remembers what the driver has said of the id, and keeps the Node of a machine
// without a confirmed one out of everything. What was written down is taken back where the driver
// names another VM: it holds no more once that one is gone, either.
func (p *plan) confirmProviderID() {
	id := p.Machine.ProviderID
	if vm := p.named(); vm != nil {
		p.Memory.Contradicted, p.Memory.NamedAt = "", p.view().at
		if id != "" && !vm.Has(id) {
			p.Memory.Contradicted, p.Memory.Confirmed = id, ""
		}
	}
	if !p.Confirmed() {
		p.Node = Node{}
		if p.Memory.Contradicted != "" {
			p.status.ProviderID, p.status.ProviderIDAliases = "", nil
		}
		return
	}
	p.Memory.Confirmed = id
}

// writeProviderIDs takes over into the status under which ids the driver knows the VM.
func (p *plan) writeProviderIDs() {
	if ids := p.KnownIDs(); len(ids) > 0 {
		p.status.ProviderID = ids[0]
		p.status.ProviderIDAliases = nil
		if vm := p.named(); vm != nil {
			p.status.ProviderIDAliases = vm.ProviderIDAliases
		} else if p.Machine.Status.ProviderID == ids[0] {
			p.status.ProviderIDAliases = p.Machine.Status.ProviderIDAliases
		}
	}
}

// taken: another machine has the uid. Nothing is done for this one, and nothing is asked about it.
func (p *plan) taken() bool {
	if p.Machine.UIDTaken == "" {
		return false
	}
	p.setPending()
	p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonMachineUIDTaken, fmt.Sprintf(
		"spec.machineUID is that of Machine %s, which had it first. Delete this Machine: nothing is done for it, nor to that one's VM.", p.Machine.UIDTaken))
	return p.waitUntil(p.Now.Add(takenPause))
}

// hasBegun says whether core has begun with the machine: what it wrote down of it is in its status.
func (p *plan) hasBegun() bool {
	return p.Machine.Status.LastOperation != nil || p.Machine.Status.ProviderID != ""
}

// adopted: a machine that comes with a providerID has the VM of that id, by the driver's word.
// Taking over a VM that carries no uid yet, which AdoptMachine does, belongs before NotAdopted is
// shown for good.
func (p *plan) adopted() bool {
	if p.Machine.ProviderID == "" || p.Confirmed() {
		return false
	}
	v := p.view()
	if p.showContradiction(v) {
		return true
	}
	if p.hasBegun() {
		// The status of a core that did not write down what was confirmed. Instance and node judge
		// by what a look says.
		return false
	}
	p.watch = Closely
	p.setPending()
	p.unadopted(v)
	return p.waitUntil(time.Time{})
}

// showContradiction shows that the driver names another VM than spec.providerID does.
func (p *plan) showContradiction(v view) bool {
	if v.instance == nil || v.instance.ProviderID == "" || v.instance.Has(p.Machine.ProviderID) {
		return false
	}
	p.watch = Closely
	p.setPending()
	p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonProviderIDConflict, fmt.Sprintf(
		"spec.providerID is %s, and the VM of this Machine is %s, says its driver. Nothing is done to either.", p.Machine.ProviderID, v.instance.ProviderID))
	return p.waitUntil(time.Time{})
}

// unadopted shows how far it is with asking the driver about spec.providerID.
func (p *plan) unadopted(v view) {
	status := metav1.ConditionUnknown
	var why string
	switch {
	case p.Driver.Unknown != "":
		p.setInstanceReady(metav1.ConditionFalse, p.Driver.unknownReason(), p.Driver.Unknown)
		return
	case p.isDenied(v):
		status = metav1.ConditionFalse
		why = fmt.Sprintf("The driver knows no VM of this Machine's machineUID, namespace and name; whether there is a VM %s does not matter. "+
			"Nothing is created in its place: delete this Machine.", p.Machine.ProviderID)
	case v.failure != nil && v.failure.Class != instance.NotFound:
		p.debounceFor("adoption", driverPatience)
		why = fmt.Sprintf("The driver has not confirmed that VM %s is this Machine's: %s", p.Machine.ProviderID, explain(v.failure))
	case p.Driver.Trouble != nil:
		why = fmt.Sprintf("The driver cannot be asked whether VM %s is this Machine's: %s", p.Machine.ProviderID, explain(p.Driver.Trouble))
	default:
		p.debounceFor("adoption", driverPatience)
		why = fmt.Sprintf("The driver has not been asked yet whether VM %s is this Machine's.", p.Machine.ProviderID)
		if !p.Driver.Ready {
			why = fmt.Sprintf("The driver cannot be asked whether VM %s is this Machine's: %s.", p.Machine.ProviderID, p.Driver.Unready)
		}
	}
	p.setInstanceReady(status, clusterv1alpha1.ReasonNotAdopted, why)
}

// isDenied says whether the driver has said that no VM of it is this machine's: it knows nothing of
// the uid, has it under another name, or knows only what is left of a create.
func (p *plan) isDenied(v view) bool {
	switch {
	case v.failure != nil && v.failure.Class == instance.NotFound:
		return v.looks >= confirmations
	case v.failure != nil:
		return v.failure.Class == instance.Conflict
	}
	return v.instance != nil && v.instance.ProviderID == ""
}

// asked: before a machine whose providerID nothing confirms goes away, the driver is asked what
// there is of its uid. With the id confirmed it goes as any other. Else no Node is drained or
// deleted, and only what carries its uid, namespace and name is deleted.
func (p *plan) asked() bool {
	if p.Machine.UIDTaken != "" || p.Machine.UID == "" {
		// What carries the uid is another machine's, or nothing can.
		p.Memory.Gone = true
	}
	if p.Machine.ProviderID == "" || p.Memory.Gone || p.Machine.Forgotten || p.Confirmed() {
		return false
	}
	v := p.view()
	named := v.instance != nil && v.instance.ProviderID != ""
	last := p.Memory.Last
	if named || last != nil && last.Operation == instance.Delete || p.Driver.UnderWay {
		return false
	}
	if p.isDenied(v) {
		// Under another name the uid is another machine's, and so is what carries it.
		p.Memory.Gone = v.failure != nil && v.failure.Class == instance.Conflict && !p.hasBegun()
		return false
	}
	p.watch = Closely
	p.status.Phase, p.status.Failure = clusterv1alpha1.MachinePhaseDeleting, nil
	p.unadopted(v)
	return p.waitUntil(time.Time{})
}
