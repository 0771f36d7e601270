package machine

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// TestUnknownProvider: a cloud without a driver is named, with those there are; such a Machine goes
// at once.
func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.startCore()
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.CloudProvider = "quarry" })
	c := b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonDriverNotFound)
	if !strings.Contains(c.Message, `"quarry"`) || !strings.Contains(c.Message, provider) {
		t.Errorf("message %q", c.Message)
	}
	b.awaitPhase(m, clusterv1alpha1.MachinePhasePending)
	b.remove(m)
	b.awaitGone(m)
}

// User data that is too long is found out when it is rendered, before anything is created.
func TestTooMuchUserDataIsNotCreated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		for range 8 {
			noise := make([]byte, 12<<10)
			_, _ = rand.Read(noise)
			m.Spec.ProviderSpec.Value.SSHPublicKeys = append(m.Spec.ProviderSpec.Value.SSHPublicKeys,
				"ssh-rsa "+base64.RawStdEncoding.EncodeToString(noise)[:16000])
		}
	})
	c := b.awaitReason(m, clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ReasonBootstrapInvalid)
	if !strings.Contains(c.Message, "at most 65536 are possible") {
		t.Errorf("message %q", c.Message)
	}
	if creates, _ := b.cloud.count(); creates != 0 {
		t.Errorf("%d creates", creates)
	}
	b.remove(m)
	b.awaitGone(m)
}

// TestAQuotaIsShownInTheCloudsWords: the cloud's own words stand in the condition, and the machine
// recovers by itself.
func TestAQuotaIsShownInTheCloudsWords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cloud.refuse = refusal(codes.ResourceExhausted, "QUOTA_EXCEEDED", "Quota exceeded for cores: 40 of 40",
		&errdetails.RetryInfo{})
	b.serve()
	b.startCore()
	m := b.newMachine("a")
	c := b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonQuotaExceeded)
	if c.Message != "Quota exceeded for cores: 40 of 40" {
		t.Errorf("message %q", c.Message)
	}
	b.awaitReason(m, clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonQuotaExceeded)
	b.cloud.change(func() { b.cloud.refuse = nil })
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	if m.Status.FailureMessage != nil {
		t.Errorf("failureMessage %q", *m.Status.FailureMessage)
	}
	b.remove(m)
	b.awaitGone(m)
}

// A Machine whose create was refused is deleted by the spec of that create, whatever its class says
// since: what the create may have left behind lies in the account of then.
func TestLIFE9_ADeleteIsToldWhatTheCreateWas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cloud.refuse = refusal(codes.ResourceExhausted, "QUOTA_EXCEEDED", "Quota exceeded for cores: 40 of 40")
	b.serve()
	b.startCore()
	class := &clusterv1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "moving"}, Provider: provider,
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"region":"old"}`)},
	}
	b.check(server.user.Create(t.Context(), class))
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		m.Spec.ProviderSpec = clusterv1alpha1.ProviderSpec{
			Value:     clusterv1alpha1.ProviderSpecValue{OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu},
			ValueFrom: &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: class.Name}},
		}
	})
	b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonQuotaExceeded)
	class.ProviderSpec.Raw = []byte(`{"region":"new"}`)
	b.check(server.user.Update(t.Context(), class))
	b.remove(m)
	b.awaitGone(m)
	b.cloud.change(func() {
		if len(b.cloud.specs) == 0 {
			t.Error("nothing was asked for to be deleted")
		}
		for _, spec := range b.cloud.specs {
			if spec != `{"region":"old"}` {
				t.Errorf("a delete was told %s", spec)
			}
		}
	})
}

// TestSpecInvalid: a refused spec fails the machine, and every wrong field is named by its whole
// path.
func TestSpecInvalid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cloud.refuse = refusal(codes.InvalidArgument, "SPEC_INVALID", "the spec is wrong", &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "size", Description: "is not a size"}},
	})
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseFailed)
	want := "spec.providerSpec.value.cloudProviderSpec.size: is not a size"
	if m.Status.FailureMessage == nil || *m.Status.FailureMessage != want || *m.Status.ErrorMessage != want {
		t.Errorf("failureMessage %v, errorMessage %v, want %q", m.Status.FailureMessage, m.Status.ErrorMessage, want)
	}
	if *m.Status.FailureReason != clusterv1alpha1.ReasonSpecInvalid || *m.Status.ErrorReason != clusterv1alpha1.ReasonSpecInvalid {
		t.Errorf("failureReason %q, errorReason %q", *m.Status.FailureReason, *m.Status.ErrorReason)
	}
	b.remove(m)
	b.awaitGone(m)
	if creates, _ := b.cloud.count(); creates != 1 {
		t.Errorf("%d creates of a spec that is wrong for good", creates)
	}
}

// TestAVMThatIsGoneFailsItsMachine: a VM that somebody else deleted is looked for twice, then its
// machine fails; no other is made for it.
func TestAVMThatIsGoneFailsItsMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.cloud.change(func() { clear(b.cloud.vms) })
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseFailed)
	b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceMissing)
	if m.Status.FailureMessage != nil {
		t.Error("failureMessage on a Machine that had a Node")
	}
	if creates, _ := b.cloud.count(); creates != 1 {
		t.Errorf("%d creates", creates)
	}
	b.remove(m)
	b.awaitGone(m)
}

// TestAStoppedVMIsShownAndNotReplaced: a VM that is switched off is shown and not replaced.
func TestAStoppedVMIsShownAndNotReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.cloud.change(func() {
		for uid, vm := range b.cloud.vms {
			b.cloud.vms[uid] = &driverv1alpha1.Machine{
				Ref: vm.GetRef(), ClusterUid: vm.GetClusterUid(), ProviderId: vm.GetProviderId(),
				State: driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, Message: "powered off by the owner",
			}
		}
	})
	c := b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceStopped)
	if !strings.Contains(c.Message, "powered off by the owner") {
		t.Errorf("message %q", c.Message)
	}
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.cloud.boot()
	b.awaitReason(m, clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonMachineReady)
	b.remove(m)
	b.awaitGone(m)
}

// TestForeignNode: a Node that is another Machine's is left alone, to the end.
func TestForeignNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m, func(n *corev1.Node) {
		n.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: "elsewhere/other"}
	})
	c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonNodeConflict)
	if !strings.Contains(c.Message, "elsewhere/other") {
		t.Errorf("message %q", c.Message)
	}
	b.remove(m)
	b.awaitGone(m)
	b.check(server.user.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	if node.Spec.Unschedulable {
		t.Error("somebody else's Node was cordoned")
	}
}

// TestDriverAway: a machine that is made while its driver is away says so, and is made when the
// driver comes. A machine that runs does not change when the driver goes.
func TestDriverAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := b.serve()
	b.startCore()
	running := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(running)
	running = b.awaitPhase(running, clusterv1alpha1.MachinePhaseRunning)
	stop()
	m := b.newMachine("b")
	b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonDriverUnavailable)
	b.serve()
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	b.check(server.user.Get(t.Context(), client.ObjectKeyFromObject(running), running))
	b.awaitReason(running, clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonMachineReady)
	for _, one := range []*clusterv1alpha1.Machine{running, m} {
		b.remove(one)
		b.awaitGone(one)
	}
}

// TestDeletedWhileCreating: a machine that is deleted while its create is under way waits for it,
// and leaves no VM.
func TestDeletedWhileCreating(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hold := make(chan struct{})
	b.cloud.hold = hold
	b.serve()
	b.startCore()
	m := b.newMachine("a")
	b.await("the create", func() (bool, any) { n, _ := b.cloud.count(); return n == 1, n })
	b.remove(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseDeleting)
	b.cloud.change(func() {
		if b.cloud.deletes > 0 {
			t.Error("deleted before the create returned")
		}
	})
	close(hold)
	b.awaitGone(m)
	if creates, vms := b.cloud.count(); creates != 1 || vms != 0 {
		t.Errorf("%d creates, %d VMs left", creates, vms)
	}
}

// TestKilledWhileCreating: a core that ends in the middle of a create is followed by one that asks
// for the same VM.
func TestKilledWhileCreating(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hold := make(chan struct{})
	b.cloud.hold = hold
	b.serve()
	stop := b.startCore()
	m := b.newMachine("a")
	b.await("the create", func() (bool, any) { n, _ := b.cloud.count(); return n == 1, n })
	stop()
	close(hold)
	b.startCore()
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	b.cloud.change(func() {
		if made := b.cloud.made[*m.Spec.MachineUID]; made != 1 {
			t.Errorf("%d VMs made for one machine", made)
		}
	})
	b.remove(m)
	b.awaitGone(m)
	if _, vms := b.cloud.count(); vms != 0 {
		t.Errorf("%d VMs left", vms)
	}
}
