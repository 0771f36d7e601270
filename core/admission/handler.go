package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// Path is where the webhook is served.
const Path = "/validate-cluster-k8s-io-v1alpha1"

// Options are what the webhook needs; all are required.
type Options struct {
	// Objects reads MachineClasses and Clusters.
	Objects client.Reader
	// Drivers are asked without their clouds. They must be connected also while this process does
	// not lead.
	Drivers *driver.Drivers
	// Specs knows the operator's rules; it is asked for nothing that it would have to read.
	Specs *specresolver.Resolver
}

// Register serves the webhook.
func Register(server webhook.Server, o Options) {
	server.Register(Path, &webhook.Admission{Handler: &handler{Options: o}})
}

type handler struct{ Options }

// Handle reviews one request. Nothing that is being deleted is held up, nor anything whose spec has
// not changed: what was once accepted can be scaled and labelled, whatever its driver says by now.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	r := &review{Options: h.Options, namespace: request.Namespace, isUpdate: request.Operation == admissionv1.Update}
	if err := r.reviewObject(ctx, request); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	response := admission.Allowed("").WithWarnings(r.warnings...)
	if len(r.errors) > 0 {
		invalid := apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name, r.errors)
		response.Allowed, response.Result = false, &invalid.ErrStatus
	}
	return response
}

// reviewObject reviews the object of a request. An error says that it cannot be read.
func (r *review) reviewObject(ctx context.Context, request admission.Request) error {
	switch request.Kind.Kind {
	case clusterv1alpha1.MachineDeploymentKind:
		return read(request, func(is, was *clusterv1alpha1.MachineDeployment) {
			r.reviewTemplate(ctx, &is.Spec.Template.Spec, &was.Spec.Template.Spec)
		})
	case clusterv1alpha1.MachineSetKind:
		return read(request, func(is, was *clusterv1alpha1.MachineSet) {
			r.reviewTemplate(ctx, &is.Spec.Template.Spec, &was.Spec.Template.Spec)
		})
	case clusterv1alpha1.MachineKind:
		return read(request, func(is, was *clusterv1alpha1.Machine) { r.reviewMachine(ctx, &is.Spec, &was.Spec) })
	case clusterv1alpha1.MachineClassKind:
		return read(request, r.reviewClass)
	case clusterv1alpha1.ClusterKind:
		return read(request, r.reviewCluster)
	}
	return nil
}

// read calls review with the object as it is to be, and as it was; that is empty if it was not.
// What is being deleted is not reviewed.
func read[T any, P interface {
	*T
	metav1.Object
}](request admission.Request, review func(is, was P)) error {
	is, was := P(new(T)), P(new(T))
	if err := json.Unmarshal(request.Object.Raw, is); err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	if request.Operation == admissionv1.Update {
		if err := json.Unmarshal(request.OldObject.Raw, was); err != nil {
			return fmt.Errorf("read the object as it was: %w", err)
		}
	}
	if is.GetDeletionTimestamp().IsZero() {
		review(is, was)
	}
	return nil
}

func (r *review) reviewTemplate(ctx context.Context, is, was *clusterv1alpha1.MachineSpec) {
	if !r.isUpdate || !isSameOrigin(is, was) {
		r.reviewSpec(ctx, is, field.NewPath("spec", "template", "spec"))
	}
}

func (r *review) reviewMachine(ctx context.Context, is, was *clusterv1alpha1.MachineSpec) {
	at := field.NewPath("spec")
	switch {
	case !r.isUpdate:
		r.reviewSpec(ctx, is, at)
	case !isSameOrigin(is, was):
		// The CRD's own rule compares free-form objects by the keys that they share, and misses a
		// renamed one.
		r.errors = append(r.errors, field.Forbidden(at.Child("providerSpec"),
			"cannot be changed on a Machine: change the template of its MachineDeployment, which replaces its machines"))
	}
}

// isSameOrigin says whether two specs make the same VM.
func isSameOrigin(a, b *clusterv1alpha1.MachineSpec) bool {
	left, right := a.ProviderSpec.DeepCopy(), b.ProviderSpec.DeepCopy()
	if !providerspec.Equal(left.Value.CloudProviderSpec.Raw, right.Value.CloudProviderSpec.Raw) {
		return false
	}
	left.Value.CloudProviderSpec.Raw, right.Value.CloudProviderSpec.Raw = nil, nil
	return apiequality.Semantic.DeepEqual(left, right) && apiequality.Semantic.DeepEqual(a.ClusterRef, b.ClusterRef)
}

func (r *review) reviewClass(is, was *clusterv1alpha1.MachineClass) {
	if r.isUpdate && is.Provider == was.Provider && providerspec.Equal(is.ProviderSpec.Raw, was.ProviderSpec.Raw) &&
		apiequality.Semantic.DeepEqual(is.SecretRef, was.SecretRef) &&
		apiequality.Semantic.DeepEqual(is.CredentialsSecretRef, was.CredentialsSecretRef) {
		return
	}
	r.reviewPart(is.Provider, is.ProviderSpec.Raw, field.NewPath("providerSpec"))
	r.reviewSecret(is.SecretRef, field.NewPath("secretRef"))
	r.reviewSecret(is.CredentialsSecretRef, field.NewPath("credentialsSecretRef"))
}

func (r *review) reviewCluster(is, was *clusterv1alpha1.Cluster) {
	if r.isUpdate && apiequality.Semantic.DeepEqual(is.Spec, was.Spec) {
		return
	}
	if common := is.Spec.ProviderSpec; common != nil {
		at := field.NewPath("spec", "providerSpec", "value", "cloudProviderSpec")
		r.reviewPart(common.Value.CloudProvider, common.Value.CloudProviderSpec.Raw, at)
	}
	r.reviewSecret(is.Spec.CredentialsSecretRef, field.NewPath("spec", "credentialsSecretRef"))
}
