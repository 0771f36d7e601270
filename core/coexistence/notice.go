package coexistence

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
)

// AddNotice has mgr report it if another system works on Machines of this cluster. The report
// comes once, when this process begins to lead: in the log, and in an Event about regarding.
// The cache of mgr must have the index of AddIndex.
func AddNotice(mgr ctrl.Manager, regarding *corev1.ObjectReference) error {
	log, events := mgr.GetLogger().WithName("foreign"), mgr.GetEventRecorder("foreign")
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		marked, err := NewReader(mgr.GetCache()).listMarked(ctx, metav1.NamespaceAll, anyOwner)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the process ends: what it could not list does not matter
		}
		if err != nil || len(marked) == 0 {
			return err
		}
		first := slices.MinFunc(marked, func(a, b clusterv1alpha1.Machine) int {
			return strings.Compare(client.ObjectKeyFromObject(&a).String(), client.ObjectKeyFromObject(&b).String())
		})
		key, mark := client.ObjectKeyFromObject(&first), foreign.Of(&first)
		log.Info("Another system works on Machines of this cluster: they, and what owns them, are left alone",
			"machines", len(marked), "system", mark.System, "example", key, "mark", mark.What)
		events.Eventf(regarding, nil, corev1.EventTypeWarning, clusterv1alpha1.ReasonManagedByAnother, "LeaveAlone",
			"%s works on Machines of this cluster, %d in all, such as %s, which carries the %s: they, and what owns them, are left alone",
			mark.System, len(marked), key, mark.What)
		return nil
	}))
}
