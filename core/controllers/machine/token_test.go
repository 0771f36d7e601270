package machine

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap/token"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// token reads the machine's token; nil where there is none.
func (b *bench) token(m *clusterv1alpha1.Machine) *corev1.Secret {
	b.Helper()
	secret := &corev1.Secret{}
	err := server.user.Get(b.Context(), token.Key(token.ID(*m.Spec.MachineUID)), secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	b.check(err)
	return secret
}

// expiry is when the machine's token expires.
func (b *bench) expiry(m *clusterv1alpha1.Machine) time.Time {
	b.Helper()
	read, err := token.Read(b.token(m))
	b.check(err)
	return read.ExpiresAt
}

// tells is Options.JoinProgress of a VM whose kubelet has its certificate, or has requested none.
func tells(approved bool) func(context.Context, *clusterv1alpha1.Machine) (lifecycle.JoinProgress, error) {
	return func(context.Context, *clusterv1alpha1.Machine) (lifecycle.JoinProgress, error) {
		return lifecycle.JoinProgress{Message: "Its kubelet has told", Approved: approved}, nil
	}
}

// TestLIFE3_LostTokenEndsItsMachine: somebody deletes the token of a VM that has yet to join. The
// machine fails at once, unless its kubelet has its certificate.
func TestLIFE3_LostTokenEndsItsMachine(t *testing.T) {
	t.Parallel()
	for name, approved := range map[string]bool{"a VM that never joins": false, "a VM whose kubelet has its certificate": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.progress = tells(approved)
			b.serve()
			stop := b.startCore()
			m := b.newMachine("a")
			b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
			b.awaitReason(m, clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ReasonBootstrapTokenCreated)
			stop()
			b.check(server.user.Delete(t.Context(), b.token(m)))
			b.startCore() // It reads the token now, and not within the minute.
			if approved {
				b.newNode(m)
				b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
				return
			}
			c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonTokenMissing)
			m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseFailed)
			if m.Status.FailureReason == nil || *m.Status.FailureReason != c.Reason || !strings.Contains(c.Message, "can never join") {
				t.Errorf("failure %v, condition %+v", m.Status.FailureReason, c)
			}
			if secret := b.token(m); secret != nil {
				t.Errorf("there is another token: %s", secret.Name)
			}
		})
	}
}

// TestLIFE3_ForbiddenIsNoLostToken: an API server that has just started forbids everything. That
// says nothing of the token: the machine neither fails, nor keeps a token when its Node is there.
func TestLIFE3_ForbiddenIsNoLostToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.progress = tells(false)
	b.serve()
	stop := b.startCore()
	m := b.newMachine("a")
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	stop()
	b.secretsForbidden.Store(true)
	b.startCore()
	b.await("a refusal", func() (bool, any) { return b.refused.Load() > 2, b.refused.Load() })
	if phase := b.awaitMachine(m, "the Machine", func(*clusterv1alpha1.Machine) bool { return true }).Status.Phase; phase != clusterv1alpha1.MachinePhaseProvisioned {
		t.Errorf("phase %s while nobody can read the token", phase)
	}
	b.secretsForbidden.Store(false)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	if secret := b.token(m); secret != nil {
		t.Errorf("%s is left", secret.Name)
	}
}

// TestLIFE3_PausedMachinesTokenIsExtended: the VM of a machine that is paused goes on coming up.
func TestLIFE3_PausedMachinesTokenIsExtended(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	stop := b.startCore()
	m := b.newMachine("a")
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	stop()
	secret := b.token(m)
	soon := time.Now().Add(3 * time.Minute)
	b.change(secret, func() { token.SetExpiration(secret, soon) })
	before := secret.Data["token-secret"]
	b.change(m, func() { m.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: "true"} })
	b.startCore()
	b.await("a token that lasts", func() (bool, any) { return b.expiry(m).After(soon.Add(time.Minute)), b.expiry(m) })
	if !bytes.Equal(before, b.token(m).Data["token-secret"]) {
		t.Error("the token is another")
	}
}

// TestLIFE3_AnotherTokenOnlyWithoutAVM: a create whose answer was lost is repeated with its token.
// Once that is lost, too, the driver has to say that there is no VM before another goes along.
func TestLIFE3_AnotherTokenOnlyWithoutAVM(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"there is a VM": true, "there is none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.progress = tells(false)
			b.cloud.refuse = refusal(codes.Unavailable, "LOST", "the answer is lost")
			b.cloud.blind = refusal(codes.Unavailable, "LOST", "nobody can look")
			b.serve()
			stop := b.startCore()
			m := b.newMachine("a")
			b.await("two creates", func() (bool, any) {
				creates, _ := b.cloud.count()
				return creates > 1, creates
			})
			b.cloud.change(func() {
				if one, two := b.cloud.creates[0].GetUserData(), b.cloud.creates[1].GetUserData(); !bytes.Equal(one, two) {
					t.Error("the second create has other user data than the first")
				}
			})
			stop()
			b.check(server.user.Delete(t.Context(), b.token(m)))
			creates, _ := b.cloud.count()
			if there {
				b.hold(m, idPrefix+m.Name)
			}
			b.cloud.change(func() { b.cloud.refuse = nil })
			b.startCore()
			b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonOutcomeUnknown)
			if now, _ := b.cloud.count(); now != creates {
				t.Error("a create was sent while nobody knew whether there is a VM")
			}
			b.cloud.change(func() { b.cloud.blind = nil })
			if there {
				b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonTokenMissing)
				b.awaitPhase(m, clusterv1alpha1.MachinePhaseFailed)
				return
			}
			b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
			if b.token(m) == nil {
				t.Error("there is no token")
			}
		})
	}
}
