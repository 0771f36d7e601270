package wire

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	driverName = "sawmill"
	prefix     = "sawmill:///"
)

var testReader = Reader{Driver: driverName, ClusterUID: "cluster-1", Prefix: prefix}

func machine(name string) Machine {
	return Machine{Namespace: "ns", Name: name, UID: "uid-" + name, Spec: []byte(`{"size":"s"}`)}
}

// running is a proper answer about a machine.
func running(ref *driverv1alpha1.MachineRef) *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{
		Ref:        ref,
		ClusterUid: testReader.ClusterUID,
		ProviderId: prefix + ref.GetUid(),
		State:      driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}
}

// says is an error as a proper driver makes it.
func says(code codes.Code, reason, message string, more ...protoadapt.MessageV1) error {
	details := append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: driverName, Reason: reason}}, more...)
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

func TestAnswersThatBreakTheContractAreUnknownOutcomes(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*driverv1alpha1.Machine) *driverv1alpha1.Machine
	}{
		{"no machine", func(*driverv1alpha1.Machine) *driverv1alpha1.Machine { return nil }},
		{"no state", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine { m.State = 0; return m }},
		{"a state of the future", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine { m.State = 99; return m }},
		{"another machine", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine { m.Ref.Uid = "x"; return m }},
		{"another name", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine { m.Ref.Name = "x"; return m }},
		{"another cluster", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine { m.ClusterUid = "x"; return m }},
		{"another prefix", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine { m.ProviderId = "x"; return m }},
		{"too long an id", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine {
			m.ProviderId += string(make([]byte, contract.MaxProviderIDBytes))
			return m
		}},
		{"too large a state", func(m *driverv1alpha1.Machine) *driverv1alpha1.Machine {
			m.LastKnownState = make([]byte, contract.MaxLastKnownStateBytes+1)
			return m
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := machine("a")
			r := testReader
			_, failure := r.Machine(m, test.spoil(running(m.Ref())))
			if failure == nil || failure.Class != instance.OutcomeUnknown || failure.Reason != "InvalidAnswer" {
				t.Errorf("got %v, want an unknown outcome", failure)
			}
		})
	}
}

func TestPollThatFindsAnotherMachinesVMSaysSo(t *testing.T) {
	m := machine("a")
	r := testReader
	if found, failure := r.Poll(m, running(m.Ref())); failure != nil || found.ProviderID == "" {
		t.Errorf("its own: %v", failure)
	}
	for _, spoil := range []func(*driverv1alpha1.MachineRef){
		func(r *driverv1alpha1.MachineRef) { r.Name = "x" }, func(r *driverv1alpha1.MachineRef) { r.Namespace = "x" },
	} {
		other := running(m.Ref())
		spoil(other.Ref)
		if found, failure := r.Poll(m, other); found != nil || failure == nil || failure.Class != instance.Conflict {
			t.Errorf("got %v, %v, want a conflict", found, failure)
		}
	}
}
