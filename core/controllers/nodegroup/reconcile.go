package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/specresolver"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are what the controller needs.
type Options struct {
	Drivers *driver.Drivers
	Specs   *specresolver.Resolver
}

// eventCapacityUnknown is the reason of the event that says why.
const eventCapacityUnknown = "CapacityUnknown"

// unavailablePause lies between two looks for a driver that does not answer.
const unavailablePause = 10 * time.Second

// retry is when a driver is asked again that could not answer, and how often it is seen whether
// what a spec inherits has changed.
const retry = 5 * time.Minute

// Add adds the controller to mgr.
func Add(mgr ctrl.Manager, o Options) error {
	r := &reconciler{
		Options: o, client: mgr.GetClient(), foreigners: coexistence.NewReader(mgr.GetClient()), events: mgr.GetEventRecorder("nodegroup"),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodegroup").
		For(&clusterv1alpha1.MachineDeployment{}, builder.WithPredicates(mayMatter())).
		WithOptions(controller.Options{RateLimiter: requeue.RateLimiter()}).
		Complete(r)
}

// mayMatter passes over changes of a status, which are most.
func mayMatter() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

type reconciler struct {
	Options

	client     client.Client
	foreigners coexistence.Reader
	events     events.EventRecorder
}

// Reconcile describes one deployment to the autoscaler, if it takes part and lacks that. It keeps
// the autoscaler away from one that is paused.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	if err := r.client.Get(ctx, request.NamespacedName, md); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	_, isMarked := md.Annotations[clusterv1alpha1.ClusterAPIPausedAnnotation]
	if !annotations.IsAutoscaled(md) && !isMarked || !md.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if other, err := r.foreigners.WhyDeployment(ctx, md); err != nil || other != "" {
		return ctrl.Result{}, err
	}
	changed := md.DeepCopy()
	if mirrorPause(changed) {
		return r.write(ctx, md, changed)
	}
	if !annotations.IsAutoscaled(md) || annotations.IsPaused(md) {
		return ctrl.Result{}, nil
	}
	effective, err := specresolver.Inherit(ctx, r.client, md.Namespace, &md.Spec.Template.Spec)
	if err != nil {
		return r.explain(md, err)
	}
	of := identify(effective.Provider, effective.Spec)
	if !isWanted(md, of) {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	template, err := r.ask(ctx, md, effective)
	if err != nil {
		return r.explain(md, err)
	}
	describe(changed, template, of)
	return r.write(ctx, md, changed)
}

// write writes the annotations of a deployment as they are in changed.
func (r *reconciler) write(ctx context.Context, md, changed *clusterv1alpha1.MachineDeployment) (ctrl.Result, error) {
	err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(md, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("write annotations for the autoscaler: %w", err)
	}
	return ctrl.Result{RequeueAfter: retry}, nil
}

// ask asks the driver. Secrets go along only once the operator's rules have passed.
func (r *reconciler) ask(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, effective specresolver.Effective,
) (*driverv1alpha1.InstanceTemplate, error) {
	d, err := r.Drivers.For(effective.Provider)
	if err != nil {
		return nil, err
	}
	schema, err := d.SpecSchema()
	if err != nil {
		return nil, err
	}
	checked, err := r.Specs.Check(ctx, effective, schema)
	if err != nil {
		return nil, err
	}
	secrets, _, err := checked.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	asked := wire.Machine{Namespace: md.Namespace, Name: md.Name, Spec: checked.JSON(), Secrets: secrets}
	return driver.InstanceTemplate(ctx, d, asked, checked.Spec().References, checked.Complete)
}

// explain says on the deployment why the autoscaler is not told what its machines offer. Errors of
// the API server are returned.
func (r *reconciler) explain(md *clusterv1alpha1.MachineDeployment, err error) (ctrl.Result, error) {
	_, isUnknown := errors.AsType[*driver.UnknownError](err)
	failure, isFailure := errors.AsType[*instance.Failure](err)
	switch {
	case isFailure && failure.Class == instance.Unavailable:
		return ctrl.Result{RequeueAfter: unavailablePause}, nil
	case isFailure || isUnknown || errors.Is(err, driver.ErrNoTemplate):
		r.events.Eventf(md, nil, corev1.EventTypeWarning, eventCapacityUnknown, "DescribeNodeGroup",
			"The cluster-autoscaler is not told what a machine offers, which it needs to scale from zero: %s. "+
				"Annotate %s and %s yourself, or mend it.", err, cpu, memory)
		return ctrl.Result{RequeueAfter: retry}, nil
	default:
		return ctrl.Result{}, err
	}
}
