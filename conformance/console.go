package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func consoleChecks() []Check {
	const feature = driverv1alpha1.Feature_FEATURE_CONSOLE
	return []Check{
		{
			ID: "console/by-uid", Level: Must, Musts: []int{63, 64}, Feature: feature, run: consoleByUID,
			Rule: "GetConsoleOutput answers of a VM that runs, whatever it has printed, also with an empty provider_id, and changes nothing.",
		},
		{
			ID: "console/missing", Level: Must, Musts: []int{66}, Feature: feature, run: consoleMissing,
			Rule: "The console of a uid that the cloud does not know, or not any more, is MACHINE_NOT_FOUND.",
		},
		{
			ID: "console/newest", Level: Must, Musts: []int{65, 105}, Feature: feature, Hooks: true, run: consoleNewest,
			Rule: "GetConsoleOutput is what the VM of that uid has printed and no other: the newest of it, at most 64 KiB.",
		},
	}
}

// readConsole asks for what the machine's VM has printed.
func (m *machine) readConsole(ctx context.Context) ([]byte, error) {
	timeout, _, _ := m.t.deadlines()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := m.t.machines.GetConsoleOutput(ctx, &driverv1alpha1.GetConsoleOutputRequest{
		Meta: m.meta(), Machine: m.ref, Provider: m.provider(), ProviderId: m.providerID, LastKnownState: m.state,
	})
	return answer.GetOutput(), err
}

func consoleByUID(ctx context.Context, t *trial) {
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	before, err := m.get(ctx)
	if err != nil {
		t.fatalf("get: %v", err)
	}
	for _, forget := range []bool{false, true} {
		if forget {
			m.forget()
		}
		if _, err := m.readConsole(ctx); err != nil {
			t.errorf("the console of the VM %s, asked with provider_id %q: %v", id, m.providerID, err)
		}
	}
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != id || now.GetState() != before.GetState() {
		t.errorf("after its console was read the VM %s, %s is %q, %s (%v)", id, before.GetState(), now.GetProviderId(), now.GetState(), err)
	}
}

func consoleMissing(ctx context.Context, t *trial) {
	m := t.machine()
	_, err := m.readConsole(ctx)
	t.expect("the console of a machine that never was", err, notFound)
	m.running(ctx)
	m.gone(ctx)
	m.forget()
	_, err = m.readConsole(ctx)
	t.expect("the console of a machine that was deleted", err, notFound)
}

func consoleNewest(ctx context.Context, t *trial) {
	m, other := t.machine(), t.machine()
	m.running(ctx)
	other.running(ctx)
	const oldest, newest = "the oldest that it says", "the newest that it says"
	line := strings.Repeat("x", 60) + "\n"
	m.print(ctx, oldest+"\n")
	m.print(ctx, strings.Repeat(line, contract.MaxConsoleBytes/len(line)+100))
	m.print(ctx, newest+"\n")
	for _, forget := range []bool{false, true} {
		if forget {
			m.forget()
			other.forget()
		}
		// That the answer is too long was judged with the call.
		output, err := m.readConsole(ctx)
		switch {
		case err != nil:
			t.errorf("the console: %v", err)
		case !bytes.Contains(output, []byte(newest)):
			t.errorf("of a long console the newest is not in the %d bytes of the answer", len(output))
		case bytes.Contains(output, []byte(oldest)):
			t.errorf("of a console of more than %d bytes the oldest is in the answer", contract.MaxConsoleBytes)
		}
		if output, err := other.readConsole(ctx); err != nil || bytes.Contains(output, []byte(newest)) {
			t.errorf("the console of another VM has what this one says, or cannot be read (%v)", err)
		}
	}
}

// print has the machine's VM print a text. A cloud of which nobody can have that leaves the check
// not run.
func (m *machine) print(ctx context.Context, text string) {
	vms := m.t.cloud.vms(ctx, m)
	if len(vms) != 1 {
		m.t.fatalf("the cloud has %d VMs of the machine, want 1", len(vms))
	}
	_, err := m.t.cloud.backend.ChangeVM(ctx, &backendv1alpha1.ChangeVMRequest{
		Id: vms[0].GetId(), Change: backendv1alpha1.VMChange_VM_CHANGE_PRINT, Message: text,
	})
	if code := status.Code(err); code == codes.InvalidArgument || code == codes.Unimplemented {
		m.t.notRun(fmt.Sprintf("the cloud's hooks cannot have a VM print something: %v", err))
	}
	if err != nil {
		m.t.fatalf("the cloud's hooks: have the VM print something: %v", err)
	}
}
