package csrapproval

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines,verbs=get;list;watch
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;watch
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kube-apiserver-client-kubelet;kubernetes.io/kubelet-serving,verbs=approve
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=nodes,verbs=get
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",namespace=kube-system,resources=secrets,verbs=get
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// The indexes of the caches.
const (
	// requestorIndex finds requests by the name of their requestor.
	requestorIndex = "csrapproval.requestor"
	// nameIndex finds Machines by their name, if that is their Node's or will be.
	nameIndex = "csrapproval.name"
)

// Options are the choices of whoever wires the controllers together. Workload and Regarding are
// required.
type Options struct {
	// Workload is the cluster of the Nodes. One that is not the manager's own must be added to the
	// manager by the caller.
	Workload cluster.Cluster
	// Regarding is the object that events are about which concern the whole cluster.
	Regarding *corev1.ObjectReference
	// MaxConcurrentReconciles is how many requests are decided at once. Default 1.
	MaxConcurrentReconciles int
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Add adds the controller of CertificateSigningRequests to mgr. The schemes of mgr and of the
// cluster of the Nodes have certificates.k8s.io and authorization.k8s.io.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := addIndexes(mgr, o.Workload); err != nil {
		return fmt.Errorf("index the caches: %w", err)
	}
	decided, err := newDecisions(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	r := &reconciler{
		Options: o, requests: o.Workload.GetClient(),
		facts: factReader{
			machines: mgr.GetClient(), liveMachines: mgr.GetAPIReader(),
			requests: o.Workload.GetClient(), live: o.Workload.GetAPIReader(),
		},
		machineEvents: mgr.GetEventRecorder("csr"), requestEvents: o.Workload.GetEventRecorder("csr"),
		decided: decided,
	}
	check := nodeClientCheck{client: r.requests, events: r.machineEvents, regarding: o.Regarding, log: mgr.GetLogger().WithName("csr")}
	if err := mgr.Add(check); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("csr").
		WatchesRawSource(source.Kind(o.Workload.GetCache(), &certificatesv1.CertificateSigningRequest{},
			&handler.TypedEnqueueRequestForObject[*certificatesv1.CertificateSigningRequest]{}, undecided())).
		Watches(&clusterv1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.waitingOf), builder.WithPredicates(factsChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter()}).
		Complete(r)
}

func addIndexes(mgr ctrl.Manager, workload cluster.Cluster) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &clusterv1alpha1.Machine{}, nameIndex, func(o client.Object) []string {
		if m, is := o.(*clusterv1alpha1.Machine); is && (m.Status.NodeRef == nil || hasNodeOfName(m)) {
			return []string{m.Name}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return workload.GetFieldIndexer().IndexField(context.Background(), &certificatesv1.CertificateSigningRequest{}, requestorIndex,
		func(o client.Object) []string {
			request, _ := o.(*certificatesv1.CertificateSigningRequest)
			return []string{request.Spec.Username}
		})
}

// undecided passes requests that nobody has decided yet.
func undecided() predicate.TypedPredicate[*certificatesv1.CertificateSigningRequest] {
	return predicate.NewTypedPredicateFuncs(func(request *certificatesv1.CertificateSigningRequest) bool { return !isDecided(request) })
}

// isDecided says whether somebody has approved or denied the request, or its signer gave it up.
func isDecided(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Conditions) > 0
}

// factsChanged passes a Machine of which something has changed that a request may wait for.
func factsChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, wasOne := e.ObjectOld.(*clusterv1alpha1.Machine)
			is, isOne := e.ObjectNew.(*clusterv1alpha1.Machine)
			return wasOne && isOne && (!ptr.Equal(was.Status.NodeRef, is.Status.NodeRef) ||
				!slices.Equal(was.Status.Addresses, is.Status.Addresses) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero())
		},
	}
}

// waitingOf returns the requests of a Machine that nobody has decided yet: those of its token, and
// those of its Node.
func (r *reconciler) waitingOf(ctx context.Context, o client.Object) []reconcile.Request {
	m, is := o.(*clusterv1alpha1.Machine)
	if !is {
		return nil
	}
	node := m.Name
	if m.Status.NodeRef != nil {
		node = m.Status.NodeRef.Name
	}
	var waiting []reconcile.Request
	for _, requestor := range []string{requestorOf(m), "system:node:" + node} {
		found, err := r.facts.requestsOf(ctx, requestor)
		if err != nil {
			return nil // the cache has everything, or the manager is about to end
		}
		for i := range found {
			if !isDecided(&found[i]) {
				waiting = append(waiting, reconcile.Request{NamespacedName: types.NamespacedName{Name: found[i].Name}})
			}
		}
	}
	return waiting
}

// reconciler is safe for use by several workers, each with another request.
type reconciler struct {
	Options

	requests client.Client
	facts    factReader
	// machineEvents are about Machines, requestEvents about requests that are no Machine's.
	machineEvents, requestEvents events.EventRecorder
	decided                      decisions
}
