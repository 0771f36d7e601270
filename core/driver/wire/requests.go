// Package wire turns core's terms into messages of the driver contract, and answers and errors of
// drivers into core's terms. It is the only place that reads a gRPC status.
//
// Read requests.go first, then answers.go; classify.go says what core makes of an error.
package wire

import (
	"crypto/rand"
	"hash/maphash"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/instance"
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
		Class: instance.SpecInvalid, Reason: Reason(reason), Message: Bounded(violations.Error(), MaxMessage),
	}
}

// Unavailable is the failure of a call that was never sent.
func Unavailable(reason, message string) *instance.Failure {
	return &instance.Failure{Class: instance.Unavailable, Reason: reason, Message: message}
}

// NameTaken is the failure of a machine whose uid is another's.
func NameTaken(message string) *instance.Failure {
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN
	return &instance.Failure{Class: instance.Conflict, Reason: Reason(reason), Message: message}
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
