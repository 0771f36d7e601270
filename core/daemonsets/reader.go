package daemonsets

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The manager's own role holds for the default namespace; operators bind others: see
// docs/joining.md.
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=apps,namespace=kube-system,resources=daemonsets,verbs=list
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=pods,verbs=list

// listKept is how long a list of DaemonSets is good: machines often join in flocks.
const listKept = 10 * time.Second

// fromCache lets the API server answer from its cache. Each list needs its own: the client adds to
// it.
func fromCache() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// Reader reads DaemonSets and pods of the cluster of the Nodes. It is safe for concurrent use.
type Reader struct {
	live       client.Reader
	namespaces []string
	clock      clock.PassiveClock

	mu       sync.Mutex
	listedAt time.Time
	critical []appsv1.DaemonSet
}

// NewReader returns a Reader of the critical DaemonSets of some namespaces. live reads from the API
// server.
func NewReader(live client.Reader, namespaces []string, c clock.PassiveClock) *Reader {
	return &Reader{live: live, namespaces: namespaces, clock: c}
}

// Waiting names, sorted and as namespace/name, the critical DaemonSets that have no Ready pod on
// the Node and should have one. It is empty when there is none, and makes no call where no
// namespace is named.
func (r *Reader) Waiting(ctx context.Context, node *corev1.Node) ([]string, error) {
	sets, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	var waiting []string
	ready := map[string]map[types.UID]bool{}
	for i := range sets {
		set := &sets[i]
		if !runsOn(set, node) {
			continue
		}
		if ready[set.Namespace] == nil {
			if ready[set.Namespace], err = r.readyOn(ctx, node.Name, set.Namespace); err != nil {
				return nil, err
			}
		}
		if !ready[set.Namespace][set.UID] {
			waiting = append(waiting, set.Namespace+"/"+set.Name)
		}
	}
	slices.Sort(waiting)
	return waiting, nil
}

// list returns the critical DaemonSets as they were within listKept. They are only read.
func (r *Reader) list(ctx context.Context) ([]appsv1.DaemonSet, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if !r.listedAt.IsZero() && now.Sub(r.listedAt) < listKept {
		return r.critical, nil
	}
	var critical []appsv1.DaemonSet
	for _, namespace := range r.namespaces {
		var list appsv1.DaemonSetList
		if err := r.live.List(ctx, &list, client.InNamespace(namespace), fromCache()); err != nil {
			return nil, fmt.Errorf("list the DaemonSets of namespace %s: %w", namespace, err)
		}
		critical = append(critical, slices.DeleteFunc(list.Items, func(d appsv1.DaemonSet) bool { return !isCritical(&d) })...)
	}
	r.listedAt, r.critical = now, critical
	return critical, nil
}

// readyOn returns the DaemonSets, by uid, that have a Ready pod on the Node.
func (r *Reader) readyOn(ctx context.Context, node, namespace string) (map[types.UID]bool, error) {
	var pods corev1.PodList
	err := r.live.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{"spec.nodeName": node}, fromCache())
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s in namespace %s: %w", node, namespace, err)
	}
	ready := map[types.UID]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && isReady(pod) {
			ready[owner.UID] = true
		}
	}
	return ready, nil
}

// isReady says whether the pod does its work, and will go on to.
func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
