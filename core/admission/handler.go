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

type handler struct {
	Options
}

// Handle judges one request. Nothing that is being deleted is held up, nor anything whose spec has
// not changed: what was once accepted can be scaled and labelled, whatever its driver says by now.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	subject, err := read(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if subject == nil {
		return admission.Allowed("")
	}
	verdict := subject(ctx, h)
	response := admission.Allowed("").WithWarnings(verdict.warnings...)
	if len(verdict.errors) == 0 {
		return response
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name, verdict.errors)
	response.Allowed, response.Result = false, &invalid.ErrStatus
	return response
}

// verdict is what there is to say about an object.
type verdict struct {
	errors   field.ErrorList
	warnings []string
}

func (v *verdict) refuse(at *field.Path, why string) {
	// Values are not shown: some are secret.
	v.errors = append(v.errors, field.Invalid(at, field.OmitValueType{}, why))
}

func (v *verdict) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// subject judges what is new in a request.
type subject func(context.Context, *handler) verdict

// read finds out what a request is about; nil when there is nothing to judge.
func read(request admission.Request) (subject, error) {
	switch request.Kind.Kind {
	case clusterv1alpha1.MachineDeploymentKind:
		is, was := &clusterv1alpha1.MachineDeployment{}, &clusterv1alpha1.MachineDeployment{}
		if err := decode(request, is, was); err != nil {
			return nil, err
		}
		return ofTemplate(is, request, &is.Spec.Template.Spec, &was.Spec.Template.Spec), nil
	case clusterv1alpha1.MachineSetKind:
		is, was := &clusterv1alpha1.MachineSet{}, &clusterv1alpha1.MachineSet{}
		if err := decode(request, is, was); err != nil {
			return nil, err
		}
		return ofTemplate(is, request, &is.Spec.Template.Spec, &was.Spec.Template.Spec), nil
	case clusterv1alpha1.MachineKind:
		is, was := &clusterv1alpha1.Machine{}, &clusterv1alpha1.Machine{}
		if err := decode(request, is, was); err != nil {
			return nil, err
		}
		return ofMachine(is, was, request), nil
	case clusterv1alpha1.MachineClassKind:
		is, was := &clusterv1alpha1.MachineClass{}, &clusterv1alpha1.MachineClass{}
		if err := decode(request, is, was); err != nil {
			return nil, err
		}
		return ofClass(is, was, request), nil
	case clusterv1alpha1.ClusterKind:
		is, was := &clusterv1alpha1.Cluster{}, &clusterv1alpha1.Cluster{}
		if err := decode(request, is, was); err != nil {
			return nil, err
		}
		return ofCluster(is, was, request), nil
	}
	return nil, nil
}

// decode reads the object as it is to be, and as it was, if it was.
func decode(request admission.Request, is, was any) error {
	if err := json.Unmarshal(request.Object.Raw, is); err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	if request.Operation != admissionv1.Update {
		return nil
	}
	if err := json.Unmarshal(request.OldObject.Raw, was); err != nil {
		return fmt.Errorf("read the object as it was: %w", err)
	}
	return nil
}

// settled says whether there is nothing to judge whatever has changed.
func settled(o metav1.Object) bool {
	return !o.GetDeletionTimestamp().IsZero()
}

func ofTemplate(o metav1.Object, request admission.Request, is, was *clusterv1alpha1.MachineSpec) subject {
	if settled(o) || request.Operation == admissionv1.Update && sameOrigin(is, was) {
		return nil
	}
	return func(ctx context.Context, h *handler) verdict {
		return h.spec(ctx, request.Namespace, is, field.NewPath("spec", "template", "spec"))
	}
}

func ofMachine(is, was *clusterv1alpha1.Machine, request admission.Request) subject {
	if settled(is) {
		return nil
	}
	at := field.NewPath("spec")
	if request.Operation != admissionv1.Update {
		return func(ctx context.Context, h *handler) verdict { return h.spec(ctx, request.Namespace, &is.Spec, at) }
	}
	if sameOrigin(&is.Spec, &was.Spec) {
		return nil
	}
	// The CRD's own rule compares free-form objects by the keys that they share, and misses a
	// renamed one.
	return func(context.Context, *handler) verdict {
		return verdict{errors: field.ErrorList{field.Forbidden(at.Child("providerSpec"),
			"cannot be changed on a Machine: change the template of its MachineDeployment, which replaces its machines")}}
	}
}

// sameOrigin says whether two specs make the same VM.
func sameOrigin(a, b *clusterv1alpha1.MachineSpec) bool {
	left, right := a.ProviderSpec.DeepCopy(), b.ProviderSpec.DeepCopy()
	if !providerspec.Equal(left.Value.CloudProviderSpec.Raw, right.Value.CloudProviderSpec.Raw) {
		return false
	}
	left.Value.CloudProviderSpec.Raw, right.Value.CloudProviderSpec.Raw = nil, nil
	return apiequality.Semantic.DeepEqual(left, right) && apiequality.Semantic.DeepEqual(a.ClusterRef, b.ClusterRef)
}

func ofClass(is, was *clusterv1alpha1.MachineClass, request admission.Request) subject {
	same := is.Provider == was.Provider && providerspec.Equal(is.ProviderSpec.Raw, was.ProviderSpec.Raw) &&
		apiequality.Semantic.DeepEqual(is.SecretRef, was.SecretRef) &&
		apiequality.Semantic.DeepEqual(is.CredentialsSecretRef, was.CredentialsSecretRef)
	if settled(is) || request.Operation == admissionv1.Update && same {
		return nil
	}
	return func(_ context.Context, h *handler) verdict {
		v := h.part(request.Namespace, is.Provider, is.ProviderSpec.Raw, field.NewPath("providerSpec"))
		h.secret(&v, request.Namespace, is.SecretRef, field.NewPath("secretRef"))
		h.secret(&v, request.Namespace, is.CredentialsSecretRef, field.NewPath("credentialsSecretRef"))
		return v
	}
}

func ofCluster(is, was *clusterv1alpha1.Cluster, request admission.Request) subject {
	if settled(is) || request.Operation == admissionv1.Update && apiequality.Semantic.DeepEqual(is.Spec, was.Spec) {
		return nil
	}
	return func(_ context.Context, h *handler) verdict {
		var v verdict
		if common := is.Spec.ProviderSpec; common != nil {
			at := field.NewPath("spec", "providerSpec", "value", "cloudProviderSpec")
			v = h.part(request.Namespace, common.Value.CloudProvider, common.Value.CloudProviderSpec.Raw, at)
		}
		h.secret(&v, request.Namespace, is.Spec.CredentialsSecretRef, field.NewPath("spec", "credentialsSecretRef"))
		return v
	}
}
