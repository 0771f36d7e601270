package e2e

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// eachEvent calls look with each Machine as it is and at each change of it, until ctx ends; gone
// says that it is the last.
func (u *user) eachEvent(ctx context.Context, look func(m *clusterv1alpha1.Machine, gone bool)) {
	u.eachEventSince(ctx, "", look)
}

// eachEventSince is eachEvent from a version on: whatever happened after it is seen, however late
// this begins.
func (u *user) eachEventSince(ctx context.Context, version string, look func(m *clusterv1alpha1.Machine, gone bool)) {
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
	changes, err := u.client.Watch(ctx, &clusterv1alpha1.MachineList{}, client.InNamespace(u.namespace), since)
	if err != nil {
		u.t.Errorf("watch machines: %v", err)
		return
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case change, open := <-changes.ResultChan():
			if !open {
				return
			}
			if machine, ok := change.Object.(*clusterv1alpha1.Machine); ok {
				look(machine, change.Type == watch.Deleted)
			}
		}
	}
}

// eachChange is eachEvent for who does not care whether it is the last.
func (u *user) eachChange(ctx context.Context, look func(m *clusterv1alpha1.Machine)) {
	u.eachEvent(ctx, func(m *clusterv1alpha1.Machine, _ bool) { look(m) })
}

// saysWhy says whether the Machine has no VM for this reason, in words that hold text.
func saysWhy(machine *clusterv1alpha1.Machine, reason, text string) bool {
	c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, text)
}
