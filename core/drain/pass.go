package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// parallel bounds how many evictions of one pass are under way at once.
const parallel = 16

// Drainer makes passes over Nodes. It remembers nothing.
type Drainer struct {
	// client reads from a cache that has AttachmentIndex, live from the API server.
	client client.Client
	live   client.Reader
	// pods is where evictions are asked for.
	pods rest.Interface
}

// New returns a Drainer for the Nodes, pods and volumes of a cluster, whose cache has
// AttachmentIndex.
func New(workload cluster.Cluster) (*Drainer, error) {
	pods, err := typedcorev1.NewForConfigAndClient(workload.GetConfig(), workload.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for evictions: %w", err)
	}
	return &Drainer{client: workload.GetClient(), live: workload.GetAPIReader(), pods: pods.RESTClient()}, nil
}

// Pass cordons the node, evicts what can be evicted, and says what is left. It does not wait for
// pods to end. node is brought up to date when it is cordoned. Pods are evicted with their own
// grace period. An error means that the pass is incomplete; another one goes on where it stopped.
// With oneByOne, pods that use claims are evicted one at a time: see evictNext.
//
// The API server's cache answers first, and it may lag behind. Before Pass says of a Node that
// it is done with, it lists the pods once more for certain. It does the same before it says of
// a silent Node that only terminating pods are left. With oneByOne it lists them for certain only:
// a pod that is terminating must not look like one that is not.
func (d *Drainer) Pass(ctx context.Context, node *corev1.Node, oneByOne bool) (Progress, error) {
	if err := d.cordon(ctx, node); err != nil {
		return Progress{}, err
	}
	if oneByOne {
		return d.evictFrom(ctx, node, &metav1.ListOptions{}, oneByOne)
	}
	progress, err := d.evictFrom(ctx, node, &metav1.ListOptions{ResourceVersion: "0"}, oneByOne)
	if err != nil || !progress.Done() && !(Silent(node) && progress.Terminating()) {
		return progress, err
	}
	return d.evictFrom(ctx, node, &metav1.ListOptions{}, oneByOne)
}

// evictFrom evicts the pods of the node that a list shows.
func (d *Drainer) evictFrom(ctx context.Context, node *corev1.Node, how *metav1.ListOptions, oneByOne bool) (Progress, error) {
	pods, err := d.listPods(ctx, node.Name, how)
	if err != nil {
		return Progress{}, err
	}
	var progress Progress
	sorted := sortPods(pods, Silent(node))
	for _, pod := range sorted.later {
		progress.Later = append(progress.Later, key(pod))
	}
	for _, pod := range sorted.wait {
		progress.Waiting = append(progress.Waiting, key(pod))
	}
	atOnce, inTurn := sorted.evict, []*corev1.Pod(nil)
	if oneByOne && !Silent(node) {
		atOnce, inTurn = splitByClaims(sorted.evict)
	}
	err = errors.Join(d.evictAll(ctx, atOnce, &progress), d.evictNext(ctx, node.Name, pods, inTurn, &progress))
	d.explainBudgets(ctx, sorted.evict, progress.Blocked)
	return progress, err
}

// listPods lists the pods of a Node.
func (d *Drainer) listPods(ctx context.Context, node string, how *metav1.ListOptions) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := d.live.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}, &client.ListOptions{Raw: how})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return pods.Items, nil
}

// cordon keeps new pods away.
func (d *Drainer) cordon(ctx context.Context, node *corev1.Node) error {
	if node.Spec.Unschedulable {
		return nil
	}
	patch := client.MergeFrom(node.DeepCopy())
	node.Spec.Unschedulable = true
	if err := d.client.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("cordon node %s: %w", node.Name, err)
	}
	return nil
}

// evictAll evicts the pods in parallel and adds what came of it to progress. What is refused for
// one pod keeps no other one's result from being told.
func (d *Drainer) evictAll(ctx context.Context, pods []*corev1.Pod, progress *Progress) error {
	var (
		mu    sync.Mutex
		errs  []error
		group sync.WaitGroup
	)
	slots := make(chan struct{}, parallel)
	for _, pod := range pods {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			outcome, why, err := d.evict(ctx, pod)
			mu.Lock()
			defer mu.Unlock()
			progress.add(pod, outcome, why)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	// In an order that stays: what a person reads of it is not to change with every pass.
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs[:min(len(errs), named)]...)
}

// outcome is what came of an eviction.
type outcome int

const (
	gone outcome = iota
	evicted
	blocked
	refused
)

// evict asks for one eviction; why says what blocks it. An error means that the API server did not
// answer. It never waits and asks again by itself. By default client-go does so, ten times, for
// every answer with a Retry-After. While a PodDisruptionBudget's status lags behind, the API
// server gives an eviction a Retry-After of ten seconds. A pass would then hold its worker for
// minutes.
func (d *Drainer) evict(ctx context.Context, pod *corev1.Pod) (outcome, string, error) {
	eviction := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		// A pod that was made again under the same name, as a StatefulSet's is, is another one.
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	}
	err := d.pods.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(eviction).MaxRetries(0).Do(ctx).Error()
	switch {
	case err == nil:
		return evicted, "", nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return gone, "", nil
	}
	if why, budgeted := budget(err); budgeted {
		return blocked, why, nil
	}
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		// As in a namespace that is terminating, where nothing new is admitted, evictions included.
		return refused, answer.Status().Message, nil
	}
	return gone, "", fmt.Errorf("evict pod %s: %w", key(pod), err)
}

// budget says whether PodDisruptionBudgets are why a pod may not be evicted, and what the API
// server says about them: it names the one that is in the way as a cause. A pod with several gets
// an internal error that, unlike all others, has no reason; nothing but a change of these budgets
// mends that. Source: EvictionREST in pkg/registry/core/pod/storage of Kubernetes.
func budget(err error) (why string, is bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	s := status.Status()
	if s.Code == http.StatusInternalServerError && s.Reason == metav1.StatusReasonUnknown {
		return s.Message, true
	}
	if s.Code != http.StatusTooManyRequests || s.Details == nil {
		return "", false
	}
	var texts []string
	for _, cause := range s.Details.Causes {
		if cause.Type == policyv1.DisruptionBudgetCause {
			texts = append(texts, cause.Message)
		}
	}
	return strings.Join(texts, " "), len(texts) > 0
}

func key(pod *corev1.Pod) string {
	return pod.Namespace + "/" + pod.Name
}
