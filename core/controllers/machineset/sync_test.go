package machineset_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/machinetemplate"
)

// patches counts the patches of Machines, not of their statuses, by name.
type patches struct {
	mu sync.Mutex
	by map[string]int
}

func (p *patches) funcs() interceptor.Funcs {
	p.by = map[string]int{}
	return interceptor.Funcs{
		Patch: func(ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ok := obj.(*clusterv1alpha1.Machine); ok {
				p.mu.Lock()
				p.by[obj.GetName()]++
				p.mu.Unlock()
			}
			return inner.Patch(ctx, obj, patch, opts...)
		},
	}
}

// are fails the test unless the Machines were patched so many times each, in the order of their
// names.
func (p *patches) are(t *testing.T, c *controllertest.Cluster, want ...int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var got []int
	for _, m := range c.Machines(t) {
		got = append(got, p.by[m.Name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches of each Machine: -want +got:\n%s", diff)
	}
}

// inTemplate waits until check finds no fault with any Machine that stays.
func inTemplate(t *testing.T, c *controllertest.Cluster, check func(*clusterv1alpha1.Machine) string) {
	t.Helper()
	c.Eventually(t, func() string {
		for _, m := range c.Machines(t) {
			if problem := check(&m); problem != "" && m.DeletionTimestamp.IsZero() {
				return m.Name + ": " + problem
			}
		}
		return ""
	})
}

func TestROL3_TheTemplateReachesMachinesInPlace(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	counted := &patches{}
	c.Manage(t, counted.funcs(), add)
	audit := c.Audit(t)
	set := newSet(t, c, 3)
	settled(t, c, set, 3)
	counted.are(t, c, 0, 0, 0)

	leaving, foreign := c.Machines(t)[0], c.Machines(t)[1]
	if err := c.Delete(t.Context(), &leaving); err != nil {
		t.Fatal(err)
	}
	has(t, c, set, 4, 3)
	controllertest.Patch(t, c, &foreign, func(m *clusterv1alpha1.Machine) {
		m.Labels["foreign"], m.Annotations["foreign"] = "stays", "stays"
	})
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Template.Labels["team"] = "a"
		s.Spec.Template.Annotations = map[string]string{"owner": "b"}
		s.Spec.Template.Spec.Metadata.Labels = map[string]string{"node": "c"}
		s.Spec.Template.Spec.Taints = []clusterv1alpha1.Taint{{Key: "gpu", Effect: "NoSchedule"}}
		s.Spec.Template.Spec.NodeDrainTimeout = &metav1.Duration{Duration: time.Minute}
		s.Spec.Template.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: time.Hour}
	})
	inTemplate(t, c, func(m *clusterv1alpha1.Machine) string {
		spec := set.Spec.Template.Spec
		_, old := m.Annotations["note"]
		if old || m.Labels["team"] != "a" || m.Labels["group"] != "nodes" || m.Annotations["owner"] != "b" {
			return fmt.Sprintf("labels %v, annotations %v", m.Labels, m.Annotations)
		}
		return cmp.Diff(spec.Metadata, m.Spec.Metadata) + cmp.Diff(spec.Taints, m.Spec.Taints) +
			cmp.Diff(spec.NodeDrainTimeout, m.Spec.NodeDrainTimeout) + cmp.Diff(spec.NodeVolumeDetachTimeout, m.Spec.NodeVolumeDetachTimeout)
	})
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		delete(s.Spec.Template.Labels, "team")
		s.Spec.Template.Annotations = nil
		s.Spec.Template.Spec = machineSpec()
	})
	inTemplate(t, c, func(m *clusterv1alpha1.Machine) string {
		_, team := m.Labels["team"]
		_, owner := m.Annotations["owner"]
		if team || owner || m.Labels["group"] != "nodes" {
			return fmt.Sprintf("labels %v, annotations %v", m.Labels, m.Annotations)
		}
		return cmp.Diff(machineSpec().Metadata, m.Spec.Metadata) + cmp.Diff(machineSpec().Taints, m.Spec.Taints) +
			cmp.Diff(machineSpec().NodeDrainTimeout, m.Spec.NodeDrainTimeout) +
			cmp.Diff(machineSpec().NodeVolumeDetachTimeout, m.Spec.NodeVolumeDetachTimeout)
	})
	has(t, c, set, 4, 3)
	counted.are(t, c, 0, 2, 2, 2)
	m := c.Machines(t)[1]
	if m.Labels["foreign"] != "stays" || m.Annotations["foreign"] != "stays" {
		t.Errorf("what somebody else had put on %s is gone: %v %v", m.Name, m.Labels, m.Annotations)
	}
	if audit.Made() != 4 {
		t.Errorf("%d Machines were made: something was replaced", audit.Made())
	}
}

// What needs another VM stays as it is, and a Machine that is adopted gets what the others have.
func TestROL3_OnlyWhatNeedsNoOtherVMIsChanged(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	stray := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: "stray",
			Labels: map[string]string{"group": "nodes", "own": "1"}, Finalizers: []string{clusterv1alpha1.MachineFinalizer},
		},
		Spec: machineSpec(),
	}
	if err := c.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	counted := &patches{}
	c.Manage(t, counted.funcs(), add)
	set := newSet(t, c, 1)
	settled(t, c, set, 1)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Template.Spec.Versions.Kubelet = "1.36.4"
		s.Spec.Template.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"flavor":"large"}`)
		s.Spec.Template.Spec.Taints = []clusterv1alpha1.Taint{{Key: "gpu", Effect: "NoSchedule"}}
	})
	inTemplate(t, c, func(m *clusterv1alpha1.Machine) string {
		if len(m.Spec.Taints) != 1 || m.Annotations["note"] != "kept" || m.Labels["own"] != "1" {
			return fmt.Sprintf("taints %v, labels %v, annotations %v", m.Spec.Taints, m.Labels, m.Annotations)
		}
		if !machinetemplate.IsSameVM(m, &clusterv1alpha1.MachineTemplateSpec{Spec: machineSpec()}) {
			return "what needs another VM has changed"
		}
		return ""
	})
	settled(t, c, set, 1)
	// It was adopted, got its share, and then the taint.
	counted.are(t, c, 3)
}

func TestROL3_ARefusedChangeIsShownAndTriedAgain(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	var allowed atomic.Bool
	c.Manage(t, interceptor.Funcs{
		Patch: func(ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ok := obj.(*clusterv1alpha1.Machine); ok && !allowed.Load() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "x", errors.New("a webhook says no"))
			}
			return inner.Patch(ctx, obj, patch, opts...)
		},
	}, add)
	set := newSet(t, c, 1)
	settled(t, c, set, 1)
	name := c.Machines(t)[0].Name
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.Template.Labels["team"] = "a" })
	hasFailure(t, c, set, "MachineUpdateFailed: bring Machine "+name+` up to the template: machines "x" is forbidden: a webhook says no`)
	allowed.Store(true)
	hasFailure(t, c, set, "")
	if c.Machines(t)[0].Labels["team"] != "a" {
		t.Error("the label has not reached the Machine")
	}
}
