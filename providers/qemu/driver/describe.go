package driver

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
)

// When it is worth asking again.
const (
	pollStart    = 500 * time.Millisecond
	pollShutdown = time.Second
	pollKill     = 100 * time.Millisecond
)

// describe says in the contract's terms what there is of a machine. A VM whose process was killed
// is gone, though its disk is there: nothing starts it again, and core replaces what is FAILED
// without a provider_id. One that was switched off is STOPPED.
func (d *Driver) describe(record *vm.Record, phase vm.Phase) *driverv1alpha1.Machine {
	m := &driverv1alpha1.Machine{
		Ref:        &driverv1alpha1.MachineRef{Namespace: record.Namespace, Name: record.Name, Uid: record.UID},
		ClusterUid: record.ClusterUID, CreateTime: timestamppb.New(record.Created),
		Addresses: []*driverv1alpha1.MachineAddress{{Type: "Hostname", Address: record.Name}},
	}
	if record.Address.IsValid() {
		m.Addresses = append(m.Addresses, &driverv1alpha1.MachineAddress{Type: "InternalIP", Address: record.Address.String()})
	}
	if phase == vm.Starting || phase == vm.Running || phase == vm.PoweredOff {
		m.ProviderId = d.prefix() + record.UID
	}
	// Once the process has ended, core repeats its delete as soon as it finds no VM on its way out.
	if !record.Deleting.IsZero() && (phase == vm.Preparing || phase == vm.Starting || phase == vm.Running) {
		m.State, m.Operation = driverv1alpha1.MachineState_MACHINE_STATE_DELETING, operation("Delete", pollShutdown)
		if time.Since(record.Deleting) >= d.options.ShutdownGrace {
			m.Operation = operation("Delete", pollKill)
		}
		return m
	}
	switch phase {
	case vm.Running:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
	case vm.Preparing, vm.Starting:
		m.State, m.Operation = driverv1alpha1.MachineState_MACHINE_STATE_CREATING, operation("Create", pollStart)
	case vm.PoweredOff:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_STOPPED
		m.Reason, m.Message = "PoweredOff", "The VM has been switched off, by its own system or with its host."
	case vm.Killed:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
		m.Reason, m.Message = "VMGone", sentence("The VM's process was killed or has crashed.", d.store.Folder(record.UID).Complaint())
	default:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
		m.Reason, m.Message = "StartFailed", sentence("The VM has never begun.", d.store.Folder(record.UID).Complaint())
	}
	return m
}

// sentence adds QEMU's own words, if it said any.
func sentence(what, said string) string {
	if said == "" {
		return what
	}
	return what + " QEMU: " + said
}

func operation(kind string, after time.Duration) *driverv1alpha1.MachineOperation {
	return &driverv1alpha1.MachineOperation{Type: kind, PollAfter: durationpb.New(after)}
}
