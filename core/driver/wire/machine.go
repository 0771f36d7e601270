// Package wire turns core's terms into messages of the driver contract, and answers and errors of
// drivers into core's terms. Nothing else decides by a gRPC status.
//
// machine.go has what is asked and what is answered; classify.go says what core makes of an error.
package wire

import (
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Machine is what a driver is told of a machine.
type Machine struct {
	Namespace, Name string
	// UID is spec.machineUID, the idempotency key.
	UID string
	// ProviderID may be empty.
	ProviderID string
	// LastKnownState is what the driver's last answer held.
	LastKnownState []byte
	// Spec is cloudProviderSpec as JSON.
	Spec []byte
	// Secrets are never logged. They and Spec are not copied: change neither after a call.
	Secrets map[string][]byte
	// Hidden is a secret that the VM has and the driver is not told: it is taken out of what is
	// shown of the console.
	Hidden []byte
}

// Key is the Machine's namespace and name.
func (m Machine) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// Ref is who the machine is.
func (m Machine) Ref() *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: m.Namespace, Name: m.Name, Uid: m.UID}
}

// Provider is what names the machine's account, and what the cloud is asked for.
func (m Machine) Provider() *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: m.Spec, Secrets: m.Secrets}
}

// Meta is what each request of a leader says of itself.
func Meta(clusterUID string, leaderEpoch int64) *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: rand.Text(), ClusterUid: clusterUID, LeaderEpoch: leaderEpoch}
}

// CheckRequest returns why a request must not be sent; nil for nothing. more are violations that
// are known already. The failure is terminal for the spec: the same request would break the same
// rule.
func CheckRequest(request any, more ...contract.Violation) *instance.Failure {
	violations := append(contract.CheckRequest(request), more...)
	if len(violations) == 0 {
		return nil
	}
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	if violations.TooLarge() {
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE
	}
	return &instance.Failure{
		Class: instance.SpecInvalid, Reason: Reason(reason), Message: messages.OneLine(violations.Error(), MaxMessage),
	}
}

// accountSeed keeps what accounts hash to from meaning anything outside this process.
var accountSeed = maphash.MakeSeed()

// Account tells cloud accounts apart, as far as core can: two machines with the same spec and
// secrets are in one. It means nothing outside this process.
func (m Machine) Account() uint64 {
	var h maphash.Hash
	h.SetSeed(accountSeed)
	_, _ = h.Write(m.Spec)
	for _, name := range slices.Sorted(maps.Keys(m.Secrets)) {
		_, _ = h.WriteString("\x00" + name + "\x00")
		_, _ = h.Write(m.Secrets[name])
	}
	return h.Sum64()
}

// Reader turns a driver's answers into core's terms, and refuses those that break the contract:
// what cannot be believed is an unknown outcome, never a success.
type Reader struct {
	// Driver is the name of the driver, ClusterUID the cluster's whose machines it is asked about.
	Driver, ClusterUID string
	// Prefix is what the driver's providerIDs begin with.
	Prefix string
}

// Machine reads an answer's machine, which must be the one that was asked about.
func (r Reader) Machine(asked Machine, m *driverv1alpha1.Machine) (*instance.Instance, *instance.Failure) {
	if violations := contract.CheckAnswer(&driverv1alpha1.GetMachineStatusResponse{Machine: m}); len(violations) > 0 {
		return nil, InvalidAnswer(violations.Error())
	}
	ref := m.GetRef()
	if ref.GetUid() != asked.UID || ref.GetNamespace() != asked.Namespace || ref.GetName() != asked.Name {
		return nil, InvalidAnswer("machine.ref: is not the machine that was asked about")
	}
	if m.GetClusterUid() != r.ClusterUID {
		return nil, InvalidAnswer("machine.cluster_uid: is another cluster's")
	}
	foreign := func(id string) bool { return !r.announced(id) }
	if foreign(m.GetProviderId()) || slices.ContainsFunc(m.GetDuplicateProviderIds(), foreign) {
		return nil, InvalidAnswer(fmt.Sprintf("machine.provider_id: does not begin with %q, as the driver announced", r.Prefix))
	}
	state, known := states[m.GetState()]
	if !known {
		return nil, InvalidAnswer("machine.state: is not known to this version of core")
	}
	return toInstance(m, state), nil
}

// IsNameless says whether a driver lists a machine by its uid alone, since the cloud has no room
// for its name: see MachineRef in the contract.
func IsNameless(m *driverv1alpha1.Machine) bool {
	ref := m.GetRef()
	return ref.GetNamespace() == ref.GetUid() && ref.GetName() == ref.GetUid()
}

// Poll reads what a poll found. A VM of the uid that was made for a machine of another name is
// not the one that was asked about. That name is the driver's word, and may hold a secret: it is
// not told.
func (r Reader) Poll(asked Machine, m *driverv1alpha1.Machine) (*instance.Instance, *instance.Failure) {
	ref := m.GetRef()
	if ref.GetUid() == asked.UID && (ref.GetNamespace() != asked.Namespace || ref.GetName() != asked.Name) {
		return nil, NameTaken("spec.machineUID is that of a VM that was made for a machine of another name")
	}
	return r.Machine(asked, m)
}

// OwnedResource is what an account holds for one uid.
type OwnedResource struct {
	// Machine is whom it was made for, as it is to be deleted: with the spec and the secrets of the
	// account.
	Machine Machine
	// ClusterUID is the cluster's that it belongs to.
	ClusterUID string
	// ProviderIDs are those of all VMs of the uid, in all their forms; there is none where only
	// leftovers are there.
	ProviderIDs []string
	// Created is zero where the driver does not say.
	Created time.Time
	// Busy: a mutation of this uid is under way in this process.
	Busy bool
}

// Owned reads a machine of the list of an account.
func (r Reader) Owned(account Machine, listed *driverv1alpha1.Machine) (OwnedResource, *instance.Failure) {
	account.Namespace, account.Name = listed.GetRef().GetNamespace(), listed.GetRef().GetName()
	account.UID, account.ProviderID = listed.GetRef().GetUid(), listed.GetProviderId()
	account.LastKnownState = listed.GetLastKnownState()
	found, failure := r.Machine(account, listed)
	if failure != nil {
		return OwnedResource{}, failure
	}
	one := OwnedResource{Machine: account, ClusterUID: listed.GetClusterUid(), ProviderIDs: found.DuplicateProviderIDs}
	if found.ProviderID != "" {
		one.ProviderIDs = slices.Concat([]string{found.ProviderID}, found.ProviderIDAliases, one.ProviderIDs)
	}
	// A time at or before 1970 was not filled in: nothing may seem old for that.
	if created := listed.GetCreateTime(); created.IsValid() && created.AsTime().Unix() > 0 {
		one.Created = created.AsTime()
	}
	return one, nil
}

// Failure reads the error of a call, as Classify does. It drops a providerID that is not one of the
// driver's.
func (r Reader) Failure(err error, sent bool) *instance.Failure {
	f := Classify(r.Driver, err, sent)
	if !r.announced(f.ProviderID) {
		f.ProviderID = ""
	}
	return f
}

// announced says whether a providerID, where there is one, begins as the driver announced.
func (r Reader) announced(providerID string) bool {
	return providerID == "" || strings.HasPrefix(providerID, r.Prefix)
}

func toInstance(m *driverv1alpha1.Machine, state instance.State) *instance.Instance {
	i := &instance.Instance{
		ProviderID:           m.GetProviderId(),
		NodeName:             m.GetNodeName(),
		State:                state,
		Reason:               word(m.GetReason()),
		Message:              messages.OneLine(m.GetMessage(), MaxMessage),
		PollAfter:            BoundedWait(m.GetOperation().GetPollAfter().AsDuration()),
		LastKnownState:       m.GetLastKnownState(),
		DuplicateProviderIDs: m.GetDuplicateProviderIds(),
		ProviderIDAliases:    m.GetProviderIdAliases(),
	}
	for _, a := range m.GetAddresses() {
		if len(i.Addresses) == maxAddresses {
			break
		}
		kind, known := addressTypes[a.GetType()]
		if a.GetType() == driverv1alpha1.AddressType_ADDRESS_TYPE_UNSPECIFIED {
			kind = corev1.NodeAddressType(messages.OneLine(a.GetLegacyType(), MaxReason)) //nolint:staticcheck // drivers of revision 1 set it
			known = kind != ""
		}
		if known {
			i.Addresses = append(i.Addresses, corev1.NodeAddress{Type: kind, Address: messages.OneLine(a.GetAddress(), maxAddress)})
		}
	}
	return i
}

var addressTypes = map[driverv1alpha1.AddressType]corev1.NodeAddressType{
	driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP:  corev1.NodeInternalIP,
	driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_IP:  corev1.NodeExternalIP,
	driverv1alpha1.AddressType_ADDRESS_TYPE_HOSTNAME:     corev1.NodeHostName,
	driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_DNS: corev1.NodeInternalDNS,
	driverv1alpha1.AddressType_ADDRESS_TYPE_EXTERNAL_DNS: corev1.NodeExternalDNS,
}

// Bounds on the addresses of a machine: they end up in its status.
const (
	maxAddresses = 64
	// maxAddress is the length of the longest DNS name.
	maxAddress = 253
)

// word is reason where it is fit for a condition, else what of it is.
func word(reason string) string {
	if len(reason) <= MaxReason && conditionWord.MatchString(reason) {
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
