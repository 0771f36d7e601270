package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
)

// look is how often the cluster is looked at.
const look = time.Second

// stuckAfter is how long nothing gets on before it is told what is in the way, again and again.
const stuckAfter = 30 * time.Second

// ErrUnconfirmed says that nothing was deleted, since nobody has confirmed it.
var ErrUnconfirmed = errors.New("nothing was deleted: give --yes to delete all of this, VMs included")

// Uninstall is the end of Millwright in one cluster.
type Uninstall struct {
	// Client talks to the API server as the person.
	Client client.Client
	// Out is where the person reads.
	Out io.Writer
	// Leads says, as an error, why no manager can be said to lead: without one no Machine goes.
	Leads func(context.Context) error
}

// kinds are ours, in the order in which they go: who makes others goes first.
var kinds = []string{
	clusterv1alpha1.MachineDeploymentKind, clusterv1alpha1.MachineSetKind, clusterv1alpha1.MachineKind,
	clusterv1alpha1.MachineClassKind, clusterv1alpha1.ClusterKind, clusterv1alpha1.MachineHealthCheckKind,
}

// makers is how many of the kinds stand for machines. The others are what machines are made from,
// and go after the last of them.
const makers = 3

// Show tells what would be deleted.
func (u Uninstall) Show(ctx context.Context) error {
	counts := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		objects, err := u.list(ctx, kind)
		if err != nil {
			return err
		}
		counts = append(counts, counted(len(objects), kind))
	}
	u.say("There are %s, in all namespaces.", strings.Join(counts, ", "))
	return nil
}

// Run deletes all objects of ours, waits until none is left, and deletes the CRDs and what protects
// them. It can be run again at any point. No CRD is touched while any object is there.
func (u Uninstall) Run(ctx context.Context) error {
	if err := u.refuseOthers(ctx); err != nil {
		return err
	}
	if err := u.empty(ctx); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := u.deleteCRD(ctx, kind); err != nil {
			return err
		}
	}
	if err := u.releasePolicies(ctx); err != nil {
		return err
	}
	if err := u.awaitRelease(ctx); err != nil {
		return err
	}
	u.say("The CRDs are gone, and no Machine was left. Remove the manager as it was installed, then what is left:\n" +
		"  helm uninstall RELEASE, or kubectl delete -k deploy/OVERLAY\n  kubectl delete -k deploy/crds --ignore-not-found")
	return nil
}

// refuseOthers returns an error where another system works on objects of our kinds: they and their
// CRDs are that system's, too.
func (u Uninstall) refuseOthers(ctx context.Context) error {
	for _, kind := range kinds {
		objects, err := u.list(ctx, kind)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if mark := foreign.Of(o); mark != (foreign.Mark{}) {
				return fmt.Errorf("%s %s/%s carries the %s of %s, which works with the same CRDs: nothing was deleted. Delete what is that system's first, by its own means",
					kind, o.GetNamespace(), o.GetName(), mark.What, mark.System)
			}
		}
	}
	return nil
}

// empty deletes all objects, and returns when there is none.
func (u Uninstall) empty(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	told, since := "", time.Now()
	for {
		left, err := u.deleteObjects(ctx)
		if ctx.Err() != nil {
			return cutShort(ctx, told)
		}
		if err != nil {
			return err
		}
		if text := left.summary(); text != told {
			u.say("%s", text)
			told, since = text, time.Now()
		}
		if left.none() {
			return nil
		}
		if time.Since(since) >= stuckAfter {
			u.tellWhy(ctx, left)
			since = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cutShort(ctx, told)
		}
	}
}

// cutShort says what was left when the time was up, or the person had enough.
func cutShort(ctx context.Context, told string) error {
	return fmt.Errorf("%w: %s. The CRDs were not touched: run it again", ctx.Err(), cmp.Or(told, "nothing was deleted"))
}

// deleteObjects deletes what is not being deleted yet, and returns what is there. What machines are
// made from goes after them.
func (u Uninstall) deleteObjects(ctx context.Context) (remaining, error) {
	var left remaining
	for i, kind := range kinds {
		objects, err := u.list(ctx, kind)
		if err != nil {
			return left, err
		}
		if i >= makers && left.machines() > 0 {
			continue
		}
		left.add(kind, objects)
		for _, o := range objects {
			if !o.GetDeletionTimestamp().IsZero() {
				continue
			}
			err := u.Client.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationForeground))
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return left, fmt.Errorf("delete %s %s/%s: %w", kind, o.GetNamespace(), o.GetName(), err)
			}
		}
	}
	return left, nil
}

// tellWhy tells what keeps machines from going.
func (u Uninstall) tellWhy(ctx context.Context, left remaining) {
	if err := u.Leads(ctx); err != nil {
		u.say("  %v: Machines go only while a manager works.", err)
	}
	for _, line := range left.reasons() {
		u.say("  %s", line)
	}
}

// list returns all objects of a kind in all namespaces; none where its CRD is not there.
func (u Uninstall) list(ctx context.Context, kind string) ([]client.Object, error) {
	list, err := u.Client.Scheme().New(clusterv1alpha1.GroupVersion.WithKind(kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	typed, ok := list.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("a %T is no list", list)
	}
	err = u.Client.List(ctx, typed)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	items, err := meta.ExtractList(typed)
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (u Uninstall) say(format string, args ...any) {
	_, _ = fmt.Fprintf(u.Out, format+"\n", args...)
}
