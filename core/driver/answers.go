package driver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// reader turns a driver's answers into core's terms, and refuses those that break the contract:
// what cannot be believed is an unknown outcome, never a success.
type reader struct {
	clusterUID string
	prefix     string
}

// machine reads an answer's machine, which must be the one that was asked about.
func (r reader) machine(asked Machine, m *driverv1alpha1.Machine) (*instance.Instance, *instance.Failure) {
	if violations := contract.CheckAnswer(&driverv1alpha1.GetMachineStatusResponse{Machine: m}); len(violations) > 0 {
		return nil, invalidAnswer(violations.Error())
	}
	ref := m.GetRef()
	if ref.GetUid() != asked.UID || ref.GetNamespace() != asked.Namespace || ref.GetName() != asked.Name {
		return nil, invalidAnswer("machine.ref: is not the machine that was asked about")
	}
	if m.GetClusterUid() != r.clusterUID {
		return nil, invalidAnswer("machine.cluster_uid: is another cluster's")
	}
	foreign := func(id string) bool { return !r.announced(id) }
	if foreign(m.GetProviderId()) || slices.ContainsFunc(m.GetDuplicateProviderIds(), foreign) {
		return nil, invalidAnswer(fmt.Sprintf("machine.provider_id: does not begin with %q, as the driver announced", r.prefix))
	}
	state, known := states[m.GetState()]
	if !known {
		return nil, invalidAnswer("machine.state: is not known to this version of core")
	}
	return toInstance(m, state), nil
}

// readPoll reads what a poll found. A VM of the uid that was made for a machine of another name is
// not the one that was asked about. That name is the driver's word, and may hold a secret: it is
// not told.
func (r reader) readPoll(asked Machine, m *driverv1alpha1.Machine) (*instance.Instance, *instance.Failure) {
	ref := m.GetRef()
	if ref.GetUid() == asked.UID && (ref.GetNamespace() != asked.Namespace || ref.GetName() != asked.Name) {
		return nil, nameTaken("spec.machineUID is that of a VM that was made for a machine of another name")
	}
	return r.machine(asked, m)
}

// failure reads the error of a call; a providerID that is not one of the driver's is dropped.
func (r reader) failure(name string, err error, sent bool) *instance.Failure {
	f := classify(name, err, sent)
	if !r.announced(f.ProviderID) {
		f.ProviderID = ""
	}
	return f
}

// announced says whether a providerID, where there is one, begins as the driver announced.
func (r reader) announced(providerID string) bool {
	return providerID == "" || strings.HasPrefix(providerID, r.prefix)
}

func toInstance(m *driverv1alpha1.Machine, state instance.State) *instance.Instance {
	i := &instance.Instance{
		ProviderID:           m.GetProviderId(),
		NodeName:             m.GetNodeName(),
		State:                state,
		Reason:               word(m.GetReason()),
		Message:              bounded(m.GetMessage(), maxMessage),
		PollAfter:            boundedWait(m.GetOperation().GetPollAfter().AsDuration()),
		LastKnownState:       m.GetLastKnownState(),
		DuplicateProviderIDs: m.GetDuplicateProviderIds(),
		ProviderIDAliases:    m.GetProviderIdAliases(),
	}
	for _, a := range m.GetAddresses() {
		if len(i.Addresses) == maxAddresses {
			break
		}
		i.Addresses = append(i.Addresses, instance.Address{
			Type: bounded(a.GetType(), maxReason), Address: bounded(a.GetAddress(), maxAddress),
		})
	}
	return i
}

// Bounds on the addresses of a machine: they end up in its status.
const (
	maxAddresses = 64
	// maxAddress is the length of the longest DNS name.
	maxAddress = 253
)

// word is reason where it is fit for a condition, else what of it is.
func word(reason string) string {
	if len(reason) <= maxReason && conditionWord.MatchString(reason) {
		return reason
	}
	return conditionReason(reason)
}

// conditionWord is narrower than what the API server accepts as a condition's reason: one CamelCase
// word.
var conditionWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

var states = map[driverv1alpha1.MachineState]instance.State{
	driverv1alpha1.MachineState_MACHINE_STATE_CREATING: instance.Creating,
	driverv1alpha1.MachineState_MACHINE_STATE_RUNNING:  instance.Running,
	driverv1alpha1.MachineState_MACHINE_STATE_UPDATING: instance.Updating,
	driverv1alpha1.MachineState_MACHINE_STATE_STOPPING: instance.Stopping,
	driverv1alpha1.MachineState_MACHINE_STATE_STOPPED:  instance.Stopped,
	driverv1alpha1.MachineState_MACHINE_STATE_DELETING: instance.Deleting,
	driverv1alpha1.MachineState_MACHINE_STATE_FAILED:   instance.Failed,
}

// invalidAnswer is OutcomeUnknown: the call may well have done what it should.
func invalidAnswer(violation string) *instance.Failure {
	return &instance.Failure{
		Class:   instance.OutcomeUnknown,
		Reason:  "InvalidAnswer",
		Message: bounded("the driver's answer breaks the contract: "+violation, maxMessage),
	}
}

// sameInstance says whether a and b tell a reader the same; how soon to poll again makes no
// difference.
func sameInstance(a, b *instance.Instance) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ProviderID == b.ProviderID && a.NodeName == b.NodeName && a.State == b.State &&
		a.Reason == b.Reason && a.Message == b.Message &&
		slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.LastKnownState, b.LastKnownState) &&
		slices.Equal(a.DuplicateProviderIDs, b.DuplicateProviderIDs) &&
		slices.Equal(a.ProviderIDAliases, b.ProviderIDAliases)
}

// sameFailure says whether a and b tell a reader the same.
func sameFailure(a, b *instance.Failure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Class == b.Class && a.Reason == b.Reason && a.Message == b.Message &&
		slices.Equal(a.Fields, b.Fields) &&
		a.ProviderID == b.ProviderID && slices.Equal(a.LastKnownState, b.LastKnownState)
}
