package lifecycle

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// tellPause is when to ask again after it was written down what is left behind.
const tellPause = time.Second

// forgotten: the machine goes without its VM, and the driver is not called any more. What it leaves
// behind is written down, and told by an Event, before anything else is done. A call under way is
// waited for: its answer may name the VM.
func (p *plan) forgotten() bool {
	if !p.Machine.Forgotten || p.Memory.Gone || !p.mayHaveInstance() {
		return false
	}
	p.status.Phase, p.status.Failure = clusterv1alpha1.MachinePhaseDeleting, nil
	if p.Driver.UnderWay {
		p.deleting("A call to the driver is under way; then the machine is forgotten.")
		return p.waitUntil(time.Time{})
	}
	told := forgottenIn(p.Machine.Status)
	if told != "" && strings.Contains(told, p.Machine.ProviderID) {
		return false
	}
	p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceForgotten, "The annotation "+clusterv1alpha1.ForgetAnnotation+
		" lets the machine go without its VM. This may be left behind in the cloud: "+p.listLeftovers()+".")
	return p.waitUntil(p.Now.Add(tellPause))
}

// forgottenIn is what a status says that the machine leaves behind; empty for nothing.
func forgottenIn(s Status) string {
	if c := s.Condition(clusterv1alpha1.ConditionInstanceReady); c.Reason == clusterv1alpha1.ReasonInstanceForgotten {
		return c.Message
	}
	return ""
}

// listLeftovers lists the ids by which people find in the cloud what is left there.
func (p *plan) listLeftovers() string {
	ids := []string{"machineUID " + p.Machine.UID}
	if p.Machine.ProviderID != "" {
		ids = append(ids, "VM "+p.Machine.ProviderID)
	}
	if vm := p.view().instance; vm != nil {
		for _, id := range vm.DuplicateProviderIDs {
			ids = append(ids, "VM "+id)
		}
	}
	return strings.Join(ids, ", ")
}

// nothingLeft is what is said of a machine that is over, as a rule.
const nothingLeft = "Nothing of the machine is left."

// finalMessage is what is said of a machine that is over.
func (p *plan) finalMessage() string {
	if p.Machine.Forgotten {
		return cmp.Or(forgottenIn(p.status), nothingLeft)
	}
	return nothingLeft
}
