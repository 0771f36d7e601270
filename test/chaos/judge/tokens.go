package judge

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// machineUIDLabel is the label of a machine's bootstrap token.
const machineUIDLabel = "cluster.k8s.io/machine-uid"

// tokens are the bootstrap tokens of machines that there are: the uids of the machines, by the
// tokens' names.
type tokens map[string]string

// change takes in a change of a token. What it holds is not kept.
func (t tokens) change(o *corev1.Secret, c Change) {
	uid := o.Labels[machineUIDLabel]
	switch {
	case uid == "":
	case c.Gone:
		delete(t, o.Name)
	default:
		t[o.Name] = uid
	}
}

// left tells of the tokens that may not be there once all has settled: those of machines that run,
// or are gone.
func (t tokens) left(machines map[string]*machine) (words []string) {
	byUID := map[string]*machine{}
	for _, m := range machines {
		if m.gone.IsZero() {
			byUID[uidOf(m.Machine)] = m
		}
	}
	for name, uid := range t {
		switch m := byUID[uid]; {
		case m == nil:
			words = append(words, fmt.Sprintf("the token %s is left, and no Machine has its uid %s", name, uid))
		case m.Status.Phase == clusterv1alpha1.MachinePhaseRunning:
			words = append(words, fmt.Sprintf("the token %s is left, and its Machine %s is Running", name, keyOf(m.Machine)))
		}
	}
	return words
}
