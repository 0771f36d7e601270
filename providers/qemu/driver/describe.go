package driver

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
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
func (d *Driver) describe(v vm.VM) *sdk.Machine {
	m := &sdk.Machine{
		Ref:        &sdk.MachineRef{Namespace: v.Namespace, Name: v.Name, Uid: v.UID},
		ClusterUid: v.ClusterUID, CreateTime: timestamppb.New(v.Created),
		Addresses: []*sdk.MachineAddress{{Type: sdk.AddressHostname, Address: v.Name}},
	}
	if v.Address.IsValid() {
		m.Addresses = append(m.Addresses, &sdk.MachineAddress{Type: sdk.AddressInternalIP, Address: v.Address.String()})
	}
	if v.Phase == vm.Starting || v.Phase == vm.Running || v.Phase == vm.PoweredOff {
		m.ProviderId = d.prefix() + v.UID
	}
	switch v.Phase {
	case vm.Running:
		m.State = sdk.StateRunning
	case vm.Preparing, vm.Starting:
		m.State, m.Operation = sdk.StateCreating, operation(pollStart)
	case vm.PoweredOff:
		m.State = sdk.StateStopped
		m.Reason, m.Message = "PoweredOff", "The VM has been switched off, by its own system or with its host."
	case vm.Killed:
		m.State = sdk.StateFailed
		m.Reason, m.Message = "VMGone", "The VM's process was killed or has crashed."+v.Complaint()
	default:
		m.State = sdk.StateFailed
		m.Reason, m.Message = "StartFailed", "The VM has never begun."+v.Complaint()
	}
	// Once the process has ended, core repeats its delete as soon as it finds no VM on its way out.
	if !v.Deleting.IsZero() && v.Phase.HasProcess() {
		m.State, m.Operation = sdk.StateDeleting, operation(pollShutdown)
		if time.Since(v.Deleting) >= d.options.ShutdownGrace {
			m.Operation = operation(pollKill)
		}
	}
	return m
}

func operation(after time.Duration) *sdk.MachineOperation {
	return &sdk.MachineOperation{PollAfter: durationpb.New(after)}
}
