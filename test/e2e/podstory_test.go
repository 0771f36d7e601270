package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/etcdlog"
)

// podStory is what became of a namespace's pods, and of the machines under them, as etcd tells it:
// nothing is missed while the API server is away.
type podStory struct {
	namespace string

	mu sync.Mutex
	// pods are those there are, by name; gone those that are not any more, and when they went.
	pods map[string]*corev1.Pod
	gone map[string]goner
	// fewest is how many pods of an app were alive at the least, once all of them had been.
	fewest map[string]int
	// machineOn is the uid of the machine of a Node. reasons count how drains were said to stand.
	machineOn map[string]string
	reasons   map[string]int
}

// goner is a pod that is gone.
type goner struct {
	pod *corev1.Pod
	at  time.Time
}

// followPods begins the story; it ends with the test.
func (u *user) followPods() *podStory {
	u.t.Helper()
	s := &podStory{
		namespace: u.namespace, pods: map[string]*corev1.Pod{}, gone: map[string]goner{}, fewest: map[string]int{},
		machineOn: map[string]string{}, reasons: map[string]int{},
	}
	u.followEtcd(s.see)
	return s
}

// followEtcd calls see with each change of an object, in the cluster of the Machines and in that of
// the Nodes, from a goroutine for each cluster. It ends with the test.
func (u *user) followEtcd(see func(etcdlog.Change)) {
	u.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	u.t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	for _, cluster := range u.Clusters() {
		url, config, err := cluster.EtcdAccess()
		if err != nil {
			u.t.Fatal(err)
		}
		all.Go(func() {
			if err := etcdlog.New(url, config, see).Follow(ctx); err != nil {
				u.t.Errorf("follow etcd: %v", err)
			}
		})
	}
}

func (s *podStory) see(c etcdlog.Change) {
	if c.Object == nil || c.Object.GetNamespace() != s.namespace {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := c.Object.(type) {
	case *corev1.Pod:
		s.seePod(o, c)
	case *clusterv1alpha1.Machine:
		if o.Status.NodeRef != nil && o.Spec.MachineUID != nil {
			s.machineOn[o.Status.NodeRef.Name] = *o.Spec.MachineUID
		}
		if !c.Gone {
			s.reasons[drainedReason(o)]++
		}
	}
}

func (s *podStory) seePod(pod *corev1.Pod, c etcdlog.Change) {
	s.pods[pod.Name] = pod
	if c.Gone {
		delete(s.pods, pod.Name)
		s.gone[pod.Name] = goner{pod: pod, at: c.At}
	}
	app, living := pod.Labels["app"], 0
	for _, other := range s.pods {
		if other.Labels["app"] == app && alive(other) {
			living++
		}
	}
	if least, all := s.fewest[app]; all {
		s.fewest[app] = min(least, living)
	}
}

// allUp says that all pods there are to be are there: from now on their budgets hold.
func (s *podStory) allUp(app string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fewest[app] = n
}

// judge fails the test for each pod that was killed, each budget that was broken and each drain
// that was given up. The map least has the budgets, by app.
func (s *podStory) judge(u *user, least map[string]int) {
	u.t.Helper()
	deletes := u.vmDeletes()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, g := range s.gone {
		if !ended(g.pod, g.at) {
			u.t.Errorf("pod %s on %s was removed at %s, in its grace until %v", name, g.pod.Spec.NodeName, g.at, g.pod.DeletionTimestamp)
		}
		if asked, is := deletes[s.machineOn[g.pod.Spec.NodeName]]; is && asked.Before(g.pod.DeletionTimestamp.Add(-time.Second)) {
			u.t.Errorf("pod %s had until %v, and its VM was deleted at %s", name, g.pod.DeletionTimestamp, asked)
		}
	}
	for name, pod := range s.pods {
		if asked, is := deletes[s.machineOn[pod.Spec.NodeName]]; is {
			u.t.Errorf("pod %s is there still, and its VM was deleted at %s", name, asked)
		}
	}
	for app, want := range least {
		if got := s.fewest[app]; got < want {
			u.t.Errorf("of the pods of %s %d were alive, the budget wants %d", app, got, want)
		}
	}
	for _, bad := range []string{clusterv1alpha1.ReasonNodeUnreachable, clusterv1alpha1.ReasonDrainTimedOut} {
		if n := s.reasons[bad]; n > 0 {
			u.t.Errorf("%d times a drain was said to have ended as %s", n, bad)
		}
	}
	u.t.Logf("%d pods ended, %d VMs were deleted; the fewest pods alive: %v; drains: %v", len(s.gone), len(deletes), s.fewest, s.reasons)
}

// vmDeletes is when the cloud was first asked to delete each VM, by machine uid.
func (u *user) vmDeletes() map[string]time.Time {
	u.t.Helper()
	calls, err := u.calls(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	info, err := u.Backend().GetBackendInfo(u.t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		u.t.Fatalf("ask the cloud for its operations: %v", err)
	}
	first := map[string]time.Time{}
	for _, call := range calls {
		at := call.GetReceiveTime().AsTime()
		if was, is := first[call.GetMachineUid()]; slices.Contains(info.GetDeleteOperations(), call.GetOperation()) && (!is || at.Before(was)) {
			first[call.GetMachineUid()] = at
		}
	}
	return first
}

// pods lists the user's.
func (u *user) pods(ctx context.Context) []corev1.Pod {
	u.t.Helper()
	var list corev1.PodList
	if err := u.workload.List(ctx, &list, client.InNamespace(u.namespace)); err != nil {
		u.t.Fatalf("list pods: %v", err)
	}
	return list.Items
}

// alive says whether the pod runs and is not on its way out.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
}
