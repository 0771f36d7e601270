package manager

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/foreign"
)

// foreignNotice says once, when this process begins to lead, that another system works on Machines
// of this cluster.
type foreignNotice struct {
	cache     cache.Cache
	log       logr.Logger
	events    events.EventRecorder
	regarding *corev1.ObjectReference
}

// addForeignNotice adds it to mgr, whose cache has the index of coexistence.AddIndex.
func addForeignNotice(mgr ctrl.Manager, o Options) error {
	err := mgr.Add(&foreignNotice{
		cache: mgr.GetCache(), log: mgr.GetLogger().WithName("foreign"), events: mgr.GetEventRecorder("foreign"), regarding: regarding(o),
	})
	if err != nil {
		return fmt.Errorf("add the notice of other systems: %w", err)
	}
	return nil
}

// NeedLeaderElection is true: a process that does not lead leaves everything alone.
func (n *foreignNotice) NeedLeaderElection() bool { return true }

// Start looks, and ends.
func (n *foreignNotice) Start(ctx context.Context) error {
	if _, err := n.cache.GetInformer(ctx, &clusterv1alpha1.Machine{}); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the process is on its way out
		}
		return fmt.Errorf("fill the cache of Machines: %w", err)
	}
	marked, err := coexistence.NewReader(n.cache).MarkedMachines(ctx)
	if err != nil || len(marked) == 0 {
		return err
	}
	first := &marked[0]
	for i := range marked {
		if key := client.ObjectKeyFromObject(&marked[i]).String(); key < client.ObjectKeyFromObject(first).String() {
			first = &marked[i]
		}
	}
	mark := foreign.Of(first)
	n.log.Info("Another system works on Machines of this cluster: they, and what owns them, are left alone",
		"machines", len(marked), "system", mark.System, "example", client.ObjectKeyFromObject(first), "mark", mark.What)
	n.events.Eventf(n.regarding, nil, corev1.EventTypeWarning, clusterv1alpha1.ReasonManagedByAnother, "LeaveAlone",
		"%s works on Machines of this cluster, %d in all, such as %s, which carries the %s: they, and what owns them, are left alone",
		mark.System, len(marked), client.ObjectKeyFromObject(first), mark.What)
	return nil
}
