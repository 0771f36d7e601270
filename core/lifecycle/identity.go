package lifecycle

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// uidRecheck lies between two checks whether another machine still has the uid.
const uidRecheck = time.Minute

// decideIdentity: a machine is known by a finalizer and a uid, both there before anything is made
// for it.
func decideIdentity(s State, d decision) (decision, bool) {
	if s.Machine.Finalizer && s.Machine.UID != "" {
		return d, false
	}
	return d.act(Identify)
}

// decideUID: if another machine has the uid, nothing is done for this one, and nothing is asked
// about it.
func decideUID(s State, d decision) (decision, bool) {
	if s.Machine.UIDTaken == "" {
		return d, false
	}
	return d.instanceIs(clusterv1alpha1.ReasonMachineUIDTaken).waitUntil(s.Now.Add(uidRecheck))
}

// Whose VM spec.providerID names. Anybody who may create a Machine can write any id there, and name
// any Node of the cluster by it. So an id counts once the driver has given it, asked by the
// machine's uid, namespace and name: as the answer to a create, or to a poll. See docs/adr/0017.
// Until then the driver is told no id and the machine has no Node.

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
	return s.Memory.Contradicted != id && (s.Memory.Confirmed == id || s.Machine.Status.hasProviderID(id))
}

// named is the VM that the driver has named last; nil where nothing is known that is as new as what
// was remembered of that.
func (s State) named() *instance.Instance {
	v := s.view()
	if v.providerID() == "" || v.at.Before(s.Memory.NamedAt) {
		return nil
	}
	return v.instance
}

// KnownIDs are the ids under which the VM is known. The first is the one that the driver gave
// it, which is the one to tell the driver. Then come all others that a Node of it may have.
// There is none until the driver has confirmed one.
func (s State) KnownIDs() []string {
	if !s.Confirmed() {
		return nil
	}
	id, aliases := s.confirmedIDs()
	ids := append([]string{id}, aliases...)
	if !slices.Contains(ids, s.Machine.ProviderID) {
		ids = append(ids, s.Machine.ProviderID)
	}
	return ids
}

// confirmedIDs are the ids of the VM of a machine whose providerID is confirmed. The id is the
// one that the driver gave, or spec.providerID where that is not known. The aliases are the
// VM's other ids.
func (s State) confirmedIDs() (id string, aliases []string) {
	if vm := s.named(); vm != nil {
		return vm.ProviderID, vm.ProviderIDAliases
	}
	if recorded := s.Machine.Status; recorded.ProviderID != "" {
		return recorded.ProviderID, recorded.ProviderIDAliases
	}
	return s.Machine.ProviderID, nil
}

// isWrittenAbout says whether core has begun with the machine: what it wrote down of it is in its
// status.
func (s State) isWrittenAbout() bool {
	return s.Machine.Status.LastOperation != nil || s.Machine.Status.ProviderID != ""
}

// decideAdoption: a machine that comes with a providerID has the VM of that id, by the driver's
// word. Taking over a VM that carries no uid yet, which AdoptMachine does, belongs before
// NotAdopted is shown for good.
func decideAdoption(s State, d decision) (decision, bool) {
	if s.Machine.ProviderID == "" || s.Confirmed() {
		return d, false
	}
	v := s.view()
	if v.providerID() != "" && !v.instance.Has(s.Machine.ProviderID) {
		d.Poll = instance.PollPending
		return d.instanceIs(clusterv1alpha1.ReasonProviderIDConflict), true
	}
	if s.isWrittenAbout() {
		// The status of a core that did not write down what was confirmed. The parts for instance
		// and Node judge by what a poll says.
		return d, false
	}
	return awaitAdoption(s, d)
}

// awaitAdoption waits for the driver to say whose VM spec.providerID names.
func awaitAdoption(s State, d decision) (decision, bool) {
	d.Poll = instance.PollPending
	d, waits := awaitDriver(s, d)
	if waits {
		return d, true
	}
	if _, _, isTransient := adoptionProgress(s); isTransient {
		d = d.debounce("adoption", driverDebounce)
	}
	return d.instanceIs(clusterv1alpha1.ReasonNotAdopted), true
}

// adoptionProgress says how far it is with asking the driver about spec.providerID, and whether
// that should pass by itself soon.
func adoptionProgress(s State) (status metav1.ConditionStatus, message string, isTransient bool) {
	id, v := s.Machine.ProviderID, s.view()
	switch {
	case isAdoptionDenied(v):
		return metav1.ConditionFalse, fmt.Sprintf("The driver knows no VM of this Machine's machineUID, namespace and name; whether there is a VM %s does not matter. "+
			"Nothing is created in its place: delete this Machine.", id), false
	case v.failure != nil && v.failure.Class != instance.NotFound:
		return metav1.ConditionUnknown, fmt.Sprintf("The driver has not confirmed that VM %s is this Machine's: %s", id, explain(v.failure)), true
	case s.Driver.Trouble != nil:
		return metav1.ConditionUnknown, fmt.Sprintf("The driver cannot be asked whether VM %s is this Machine's: %s", id, explain(s.Driver.Trouble)), false
	case !s.Driver.Ready:
		return metav1.ConditionUnknown, fmt.Sprintf("The driver cannot be asked whether VM %s is this Machine's: %s.", id, s.Driver.Unready), true
	}
	return metav1.ConditionUnknown, fmt.Sprintf("The driver has not been asked yet whether VM %s is this Machine's.", id), true
}

// isAdoptionDenied says whether the driver has said that no VM of it is this machine's: it knows
// nothing of the uid, has it under another name, or knows only what is left of a create.
func isAdoptionDenied(v view) bool {
	switch {
	case v.failure != nil && v.failure.Class == instance.NotFound:
		return v.isMissing()
	case v.failure != nil:
		return v.failure.Class == instance.Conflict
	}
	return v.instance != nil && v.instance.ProviderID == ""
}

// decideUnadopted: before a machine whose providerID nothing confirms goes away, the driver is
// asked what there is of its uid. With the id confirmed it goes as any other. Else no Node is
// drained or deleted, and only what carries its uid, namespace and name is deleted.
func decideUnadopted(s State, d decision) (decision, bool) {
	if s.Machine.UIDTaken != "" || s.Machine.UID == "" {
		// What carries the uid is another machine's, or nothing can.
		d.Memory.Gone = true
	}
	if s.Machine.ProviderID == "" || d.Memory.Gone || s.Machine.Forgotten || s.Confirmed() {
		return d, false
	}
	v, last := s.view(), s.Memory.Last
	if v.providerID() != "" || last != nil && last.Operation == instance.Delete || s.Driver.UnderWay {
		return d, false
	}
	if isAdoptionDenied(v) {
		// Under another name the uid is another machine's, and so is what carries it.
		d.Memory.Gone = v.failure != nil && v.failure.Class == instance.Conflict && !s.isWrittenAbout()
		return d, false
	}
	d.phase = clusterv1alpha1.MachinePhaseDeleting
	return awaitAdoption(s, d)
}

// decideLateInstance: a VM whose create was answered after the deletion began still has to be
// known, for its Node is found by it.
func decideLateInstance(s State, d decision) (decision, bool) {
	id := s.view().providerID()
	if id == "" || s.Machine.ProviderID != "" || d.Memory.Gone {
		return d, false
	}
	return d.recordProviderID(id)
}

// describeProviderIDs returns the id that the driver gave the VM, and its other ids. What was
// written down is taken back where the driver names another VM: it holds no more once that one is
// gone, either.
func describeProviderIDs(s State) (id string, aliases []string) {
	switch {
	case s.Confirmed():
		return s.confirmedIDs()
	case s.Memory.Contradicted != "":
		return "", nil
	}
	return s.Machine.Status.ProviderID, s.Machine.Status.ProviderIDAliases
}
