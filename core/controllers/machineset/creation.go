package machineset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/surge"
)

// outcome is what became of a request to create a Machine.
type outcome struct {
	kind    outcomeKind
	machine scale.Machine
	err     error
}

type outcomeKind int

const (
	// notSent: there was no request.
	notSent outcomeKind = iota
	// exists: the Machine is there, made by this request or an earlier one.
	exists
	// taken: an object that is not the set's has the name.
	taken
	// refused: the API server has refused the request; nothing was created.
	refused
	// lost: nobody knows.
	lost
)

// post creates the Machine of that name. A Machine that is there already, and the set's, is as good
// as created.
func (r *reconciler) post(ctx context.Context, set *clusterv1alpha1.MachineSet, name string) outcome {
	m := newMachine(set, name)
	err := r.client.Create(ctx, m)
	switch {
	case err == nil:
		r.metrics.created.Inc()
		return outcome{kind: exists, machine: scale.MachineOf(m)}
	case apierrors.IsAlreadyExists(err):
		return r.recognize(ctx, set, name)
	case surge.IsRefused(err):
		r.metrics.refused.Inc()
		return outcome{kind: refused, err: fmt.Errorf("create Machine %s: %w", name, err)}
	default:
		return outcome{kind: lost, err: fmt.Errorf("create Machine %s: %w", name, err)}
	}
}

// recognize tells whose the object of that name is: created by the set are those that it controls.
func (r *reconciler) recognize(ctx context.Context, set *clusterv1alpha1.MachineSet, name string) outcome {
	m := &clusterv1alpha1.Machine{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, m); err != nil {
		return outcome{kind: lost, err: fmt.Errorf("look up Machine %s, which exists already: %w", name, err)}
	}
	if owner := metav1.GetControllerOf(m); owner == nil || owner.UID != set.UID {
		return outcome{kind: taken}
	}
	return outcome{kind: exists, machine: scale.MachineOf(m)}
}

// newMachine makes a Machine from the set's template. It has everything from the start that it
// needs later: each write less counts, with thousands of Machines.
func newMachine(set *clusterv1alpha1.MachineSet, name string) *clusterv1alpha1.Machine {
	template := set.Spec.Template.DeepCopy()
	owner := ownership.Owner{Object: set, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind)}
	uid := string(uuid.NewUUID())
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Name:            name,
			Finalizers:      []string{clusterv1alpha1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{owner.Reference()},
		},
		Spec: template.Spec,
	}
	ownership.SyncMetadata(m, template.Labels, template.Annotations)
	// The uid of a VM is random, not made from the name: the first Machine of a name is the one
	// that counts.
	m.Spec.MachineUID = &uid
	m.Spec.ProviderID = nil
	return m
}
