package simkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// Options are what can be chosen. The zero value is of use.
type Options struct {
	// Log gets a line for each kubelet that starts, stops or refuses to. Nil discards them.
	Log *slog.Logger
	// ClusterUID restricts the fleet to VMs of one cluster; empty means all VMs whose user data
	// starts a kubelet.
	ClusterUID string
	// LeaseDuration is how long a Lease is good for; it is renewed after a quarter of that. 0 means
	// the real kubelet's 40 s. Longer ones suit large fleets: each renewal is a write.
	LeaseDuration time.Duration
	// KubeletVersion is what Nodes report whose user data does not say; empty means v1.36.3.
	KubeletVersion string
	// Capacity is what each Node has, all of it allocatable; nil means 4 CPUs, 16 GiB and 110 pods.
	Capacity corev1.ResourceList
	// Workers is how many requests may be under way at once; 0 means 32. Kubelets that wait for a
	// certificate do not count.
	Workers int
	// Fast has kubelets register Nodes as the fleet's user, without a certificate: for benchmarks,
	// which measure something else.
	Fast bool
}

const (
	defaultLeaseDuration  = 40 * time.Second
	defaultKubeletVersion = "v1.36.3"
	defaultWorkers        = 32
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = defaultLeaseDuration
	}
	if o.KubeletVersion == "" {
		o.KubeletVersion = defaultKubeletVersion
	}
	if o.Capacity == nil {
		o.Capacity = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("4"),
			corev1.ResourceMemory: resource.MustParse("16Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	return o
}

// Fleet plays all kubelets of a cloud. Make one with [New].
type Fleet struct {
	client  kubernetes.Interface
	backend backendv1alpha1.BackendServiceClient
	options Options
	queue   workqueue.TypedRateLimitingInterface[string]
	leases  leaseWheel
	// joins are the kubelets that are about to get a certificate.
	joins sync.WaitGroup

	mu sync.Mutex
	// machines holds all VMs by the cloud's id. A VM's own worker, of which the queue runs one at a
	// time, is the only one to change what is behind machine.kubelet.
	machines map[string]*machine
	// registered holds what earlier processes registered, by provider id, until a VM claims it.
	registered map[string]*corev1.Node
}

// machine is a VM and the kubelet on it.
type machine struct {
	vm *backendv1alpha1.VM
	// kubelet is nil until the VM has registered a Node.
	kubelet *kubelet
	// interrupted says that the VM was seen in another state than running since the kubelet
	// started.
	interrupted bool
	// claimed says that an earlier process registered the VM's Node: the certificate was lost with
	// that process, but the Node is there. Only the VM's worker uses it.
	claimed     bool
	credentials credentials
}

// A kubelet that cannot register tries again, soon at first.
const (
	minRetry = 50 * time.Millisecond
	maxRetry = 5 * time.Second
)

// New returns a Fleet that acts through client, which should have no rate limit of its own.
func New(client kubernetes.Interface, backend backendv1alpha1.BackendServiceClient, options Options) *Fleet {
	options = options.withDefaults()
	return &Fleet{
		client:   client,
		backend:  backend,
		options:  options,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry)),
		leases:   newLeaseWheel(options.LeaseDuration),
		machines: map[string]*machine{},
	}
}

// Run plays until ctx ends. It waits for an API server and a cloud that are not there yet, or not
// there any more. Nodes stay as they are. A Fleet runs once.
func (f *Fleet) Run(ctx context.Context) {
	if !f.listRegistered(ctx) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { f.follow(ctx) })
	wg.Go(func() { f.renewLeases(ctx) })
	for range f.options.Workers {
		wg.Go(func() {
			for f.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	f.queue.ShutDown()
	wg.Wait()
	f.joins.Wait()
}

// listRegistered remembers the Nodes there are, so that taking over thousands costs no write. It
// returns false when ctx ended before it could.
func (f *Fleet) listRegistered(ctx context.Context) bool {
	f.registered = map[string]*corev1.Node{}
	options := metav1.ListOptions{ResourceVersion: "0"} // From the cache: claims are checked again before each write.
	err := retry(ctx, f.options.Log, "list Nodes", func() error {
		nodes, err := f.client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if id := nodes.Items[i].Spec.ProviderID; id != "" {
				f.registered[id] = &nodes.Items[i]
			}
		}
		return nil
	})
	return err == nil
}

// retry calls do until it succeeds or ctx ends, and returns the last error then.
func retry(ctx context.Context, log *slog.Logger, what string, do func() error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for delay := minRetry; ; delay = min(2*delay, maxRetry) {
		err := do()
		if err == nil {
			return nil
		}
		log.Warn("Attempt failed and will be repeated", "attempt", what, "error", err)
		timer.Reset(delay)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-timer.C:
		}
	}
}

// work does one VM's next step, and returns false when there will be none.
func (f *Fleet) work(ctx context.Context) bool {
	id, quit := f.queue.Get()
	if quit {
		return false
	}
	defer f.queue.Done(id)
	err := f.step(ctx, id)
	if err == nil {
		f.queue.Forget(id)
		return true
	}
	if ctx.Err() == nil {
		f.options.Log.Warn("Kubelet failed and will try again", "vm", id, "error", err)
		f.queue.AddRateLimited(id)
	}
	return true
}

// step brings one VM's kubelet to where the VM's state wants it. Doing so again changes nothing.
func (f *Fleet) step(ctx context.Context, id string) error {
	f.mu.Lock()
	m := f.machines[id]
	f.mu.Unlock()
	if m == nil {
		return nil
	}
	switch vm := f.current(m); vm.GetState() {
	case backendv1alpha1.VMState_VM_STATE_RUNNING:
		return f.boot(ctx, m, vm)
	case backendv1alpha1.VMState_VM_STATE_STOPPED:
		return f.shutDown(ctx, m, vm, shutdownConditions(time.Now()))
	case backendv1alpha1.VMState_VM_STATE_FAILED:
		return f.shutDown(ctx, m, vm, nil)
	case backendv1alpha1.VMState_VM_STATE_GONE:
		if err := f.shutDown(ctx, m, vm, nil); err != nil {
			return err
		}
		f.forget(id)
		return nil
	default: // Not yet up, or on its way out: nothing to say.
		return nil
	}
}

func (f *Fleet) current(m *machine) *backendv1alpha1.VM {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.vm
}

func (f *Fleet) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.machines, id)
}
