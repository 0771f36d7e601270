package specresolver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// server answers with what the test says, and counts.
type server struct {
	client.Reader
	secrets map[string]string
	err     error
	reads   int
}

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads++
	if s.err != nil {
		return s.err
	}
	value, has := s.secrets[key.String()]
	if !has {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	switch o := into.(type) {
	case *corev1.Secret:
		o.Data = map[string][]byte{"k": []byte(value)}
	case *corev1.ConfigMap:
		o.Data = map[string]string{"k": "map of " + value}
	}
	return nil
}

func TestAPI4_OnlyWhatIsAllowedIsRead(t *testing.T) {
	s := &server{secrets: map[string]string{"ns/a": "1", "shared/a": "2", "kube-system/a": "3"}}
	r := New(s, Options{Namespaces: []string{"shared", CopiesNamespace}, Clock: testingclock.NewFakePassiveClock(time.Now())}).reader
	for _, tc := range []struct {
		ref    providerspec.Reference
		want   string
		class  instance.Class
		detail string
	}{
		{ref: providerspec.Reference{Kind: providerspec.Secret, Name: "a", Key: "k"}, want: "1"},
		{ref: providerspec.Reference{Kind: providerspec.ConfigMap, Name: "a", Key: "k"}, want: "map of 1"},
		{ref: providerspec.Reference{Kind: providerspec.Secret, Namespace: "shared", Name: "a", Key: "k"}, want: "2"},
		{ref: providerspec.Reference{Kind: providerspec.Secret, Namespace: "kube-system", Name: "a", Key: "k"}, class: instance.SpecInvalid, detail: "--secret-namespaces"},
		{ref: providerspec.Reference{Kind: providerspec.Secret, Namespace: CopiesNamespace, Name: "a", Key: "k"}, class: instance.SpecInvalid, detail: "Millwright's own"},
		{ref: providerspec.Reference{Kind: providerspec.Secret, Name: "a", Key: "none"}, class: instance.Precondition, detail: `no key "none"`},
		{ref: providerspec.Reference{Kind: providerspec.Secret, Name: "none", Key: "k"}, class: instance.Precondition, detail: "Secret ns/none is not there"},
	} {
		got, _, err := r.value(t.Context(), Effective{Namespace: "ns"}, tc.ref)
		failure, _ := errors.AsType[*instance.Failure](err)
		if failure == nil {
			failure = &instance.Failure{}
		}
		if string(got) != tc.want || failure.Class != tc.class || !strings.Contains(failure.Message, tc.detail) {
			t.Errorf("%+v: got %q, %v", tc.ref, got, err)
		}
	}
}

func TestWhatWasReadHoldsForSeconds(t *testing.T) {
	s := &server{secrets: map[string]string{"ns/a": "old"}}
	clock := testingclock.NewFakePassiveClock(time.Now())
	r := New(s, Options{Clock: clock}).reader
	ref := clusterv1alpha1.SecretReference{Name: "a"}
	for range 1000 {
		if read, err := r.secret(t.Context(), Effective{Namespace: "ns"}, ref); err != nil || string(read.data["k"]) != "old" {
			t.Fatal(read, err)
		}
	}
	if s.reads != 1 {
		t.Errorf("read %d times", s.reads)
	}
	s.secrets["ns/a"] = "new"
	clock.SetTime(clock.Now().Add(kept))
	if read, err := r.secret(t.Context(), Effective{Namespace: "ns"}, ref); err != nil || string(read.data["k"]) != "new" {
		t.Errorf("rotated: %s, %v", read.data, err)
	}
	// An API server that is away is no statement about the Secret, and is not remembered.
	clock.SetTime(clock.Now().Add(kept))
	s.err = errors.New("away")
	if _, err := r.secret(t.Context(), Effective{Namespace: "ns"}, ref); !errors.Is(err, s.err) {
		t.Errorf("away: %v", err)
	}
	s.err = apierrors.NewForbidden(schema.GroupResource{}, "a", nil)
	if _, err := r.secret(t.Context(), Effective{Namespace: "ns"}, ref); err == nil || !strings.Contains(err.Error(), "millwright-credentials") {
		t.Errorf("forbidden: %v", err)
	}
	s.err = nil
	clock.SetTime(clock.Now().Add(missingKept))
	if _, err := r.secret(t.Context(), Effective{Namespace: "ns"}, ref); err != nil {
		t.Errorf("allowed again: %v", err)
	}
}
