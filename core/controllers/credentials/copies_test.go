package credentials

import (
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// rig resolves specs with a clock of its own, on a real API server.
type rig struct {
	*controllertest.Cluster
	t     *testing.T
	clock *testingclock.FakePassiveClock
	specs *specresolver.Resolver
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c := controllertest.New(t)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: specresolver.CopiesNamespace}}
	if err := c.Create(t.Context(), home); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(time.Now())
	return &rig{c, t, clock, specresolver.New(c, specresolver.Options{Clock: clock, Writer: c})}
}

// later passes over what is remembered.
func (r *rig) later() { r.clock.SetTime(r.clock.Now().Add(2 * time.Minute)) }

func (r *rig) secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "cloud"}, Data: map[string][]byte{"key": []byte("first")},
	}
}

func (r *rig) do(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) effective() specresolver.Effective {
	return specresolver.Effective{Namespace: r.Namespace, Credentials: []clusterv1alpha1.SecretReference{{Name: "cloud"}}}
}

func (r *rig) check(e specresolver.Effective) specresolver.Checked {
	r.t.Helper()
	checked, err := r.specs.Check(r.t.Context(), e, providerspec.NoSchema("there is none"))
	r.do(err)
	return checked
}

// read reads the key of a machine that may exist, and says whether it comes from a copy; empty
// where it cannot be read.
func (r *rig) read() (key string, copied bool) {
	r.t.Helper()
	e := r.effective()
	e.MayExist = true
	secrets, missing, err := r.check(e).Secrets(r.t.Context())
	if failure, is := errors.AsType[*instance.Failure](err); is && failure.Class == instance.Precondition {
		return "", false
	}
	r.do(err)
	return string(secrets["key"]), missing != nil
}

// copies are those of the test's namespace.
func (r *rig) copies() []specresolver.Copy {
	r.t.Helper()
	all, err := r.specs.Copies(r.t.Context())
	r.do(err)
	var own []specresolver.Copy
	for _, c := range all {
		if c.Source.Namespace == r.Namespace {
			own = append(own, c)
		}
	}
	return own
}

// A copy is written once for all machines, and again when the Secret has changed. It is read only
// where the Secret is not there, and only for machines that may exist.
func TestOPS11_ACopyIsReadWhereTheSecretIsGone(t *testing.T) {
	r := newRig(t)
	r.do(r.Create(t.Context(), r.secret()))
	for range 3 {
		r.do(r.check(r.effective()).Keep(t.Context()))
	}
	first := r.copies()
	if len(first) != 1 {
		t.Fatalf("there are %d copies", len(first))
	}
	if key, copied := r.read(); key != "first" || copied {
		t.Errorf("while the Secret is there: %q, from a copy: %t", key, copied)
	}
	rotated := r.secret()
	rotated.Data["key"] = []byte("second")
	r.do(r.Update(t.Context(), rotated))
	r.later()
	r.do(r.check(r.effective()).Keep(t.Context()))

	r.do(r.Delete(t.Context(), rotated))
	r.later()
	if key, copied := r.read(); key != "second" || !copied {
		t.Errorf("after the Secret is gone: %q, from a copy: %t", key, copied)
	}
	for what, err := range map[string]error{
		"the secrets of a machine that cannot exist": func() error { _, _, err := r.check(r.effective()).Secrets(t.Context()); return err }(),
		"a copy before a create":                     r.check(r.effective()).Keep(t.Context()),
	} {
		if failure, is := errors.AsType[*instance.Failure](err); !is || failure.Reason != clusterv1alpha1.ReasonReferenceUnresolved {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The Secret comes back: it counts again.
	r.do(r.Create(t.Context(), r.secret()))
	r.later()
	if key, copied := r.read(); key != "first" || copied {
		t.Errorf("when the Secret is back: %q, from a copy: %t", key, copied)
	}
}

// Whoever gets a namespace of the same name later has no use of the copies of the one before.
func TestOPS11_ACopyIsOfOneNamespaceOnly(t *testing.T) {
	r := newRig(t)
	r.do(r.Create(t.Context(), r.secret()))
	r.do(r.check(r.effective()).Keep(t.Context()))
	r.do(r.Delete(t.Context(), r.secret()))
	r.later()
	if key, _ := r.read(); key != "first" {
		t.Fatalf("the copy says %q", key)
	}
	// No controller ends namespaces here.
	old := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}
	r.do(r.Delete(t.Context(), old))
	r.do(r.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	old.Spec.Finalizers = nil
	r.do(r.SubResource("finalize").Update(t.Context(), old))
	r.do(r.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}))
	r.later()
	if key, _ := r.read(); key != "" {
		t.Errorf("another namespace of this name reads %q", key)
	}
}

// A copy goes when nobody needs it, but not while a create that asked for it may not show yet.
func TestOPS11_ACopyThatACreateNeedsStays(t *testing.T) {
	r := newRig(t)
	r.do(r.Create(t.Context(), r.secret()))
	r.do(r.check(r.effective()).Keep(t.Context()))
	r.do(r.specs.RemoveCopy(t.Context(), r.copies()[0]))
	if n := len(r.copies()); n != 1 {
		t.Errorf("after a create there are %d copies", n)
	}
	r.later()
	listed := r.copies()[0]
	rotated := r.secret()
	rotated.Data["key"] = []byte("second")
	r.do(r.Update(t.Context(), rotated))
	r.do(r.check(r.effective()).Renew(t.Context()))
	r.do(r.specs.RemoveCopy(t.Context(), listed))
	if n := len(r.copies()); n != 1 {
		t.Errorf("after it was changed there are %d copies", n)
	}
	r.do(r.specs.RemoveCopy(t.Context(), r.copies()[0]))
	if n := len(r.copies()); n != 0 {
		t.Errorf("when nobody needs it there are %d copies", n)
	}
	r.do(r.check(r.effective()).Keep(t.Context()))
	if n := len(r.copies()); n != 1 {
		t.Errorf("before the next create there are %d copies", n)
	}
}

// One Secret that is missing keeps no other from being copied.
func TestOPS11_EachSecretIsCopiedByItself(t *testing.T) {
	r := newRig(t)
	r.do(r.Create(t.Context(), r.secret()))
	e := r.effective()
	e.Credentials = append([]clusterv1alpha1.SecretReference{{Name: "missing"}}, e.Credentials...)
	if failure, is := errors.AsType[*instance.Failure](r.check(e).Keep(t.Context())); !is || failure.Class != instance.Precondition {
		t.Errorf("with one missing: %v", failure)
	}
	if n := len(r.copies()); n != 1 {
		t.Errorf("there are %d copies", n)
	}
}

// A Secret that is no copy is nobody's credentials, whatever its name.
func TestOPS11_OnlyACopyIsReadAsOne(t *testing.T) {
	r := newRig(t)
	r.do(r.Create(t.Context(), r.secret()))
	r.do(r.check(r.effective()).Keep(t.Context()))
	r.do(r.Delete(t.Context(), r.secret()))
	var all corev1.SecretList
	r.do(r.List(t.Context(), &all, client.InNamespace(specresolver.CopiesNamespace)))
	for i := range all.Items {
		copied := &all.Items[i]
		if copied.Annotations["cluster.k8s.io/copied-namespace"] != r.Namespace {
			continue
		}
		r.do(r.Delete(t.Context(), copied))
		planted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: copied.Namespace, Name: copied.Name}, Data: copied.Data}
		r.do(r.Create(t.Context(), planted))
	}
	r.later()
	if key, _ := r.read(); key != "" {
		t.Errorf("what is no copy was read: %q", key)
	}
	if n := len(r.copies()); n != 0 {
		t.Errorf("%d Secrets are called copies", n)
	}
}
