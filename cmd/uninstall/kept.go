package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// The kinds of what is kept. Bindings go before their policies.
var (
	crdKind     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	policyKinds = []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	}
)

// namespacePolicy refuses to delete a namespace with KeptLabel.
const namespacePolicy = "millwright-namespace-deletion"

// deleteCRD deletes the CRD of a kind of which there is no object, and returns when it is gone.
func (u Uninstall) deleteCRD(ctx context.Context, kind string) error {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(crdKind)
	plural, _ := meta.UnsafeGuessKindToResource(clusterv1alpha1.GroupVersion.WithKind(kind))
	key := client.ObjectKey{Name: plural.Resource + "." + plural.Group}
	if err := u.Client.Get(ctx, key, crd); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read CRD %s: %w", key.Name, err)
	}
	if err := u.allow(ctx, crd, true); err != nil {
		return err
	}
	// Whatever was made meanwhile would go with the CRD.
	objects, err := u.list(ctx, kind)
	if err == nil && len(objects) > 0 {
		err = fmt.Errorf("%s made meanwhile: run it again", counted(len(objects), kind))
	}
	if err != nil {
		// The CRD is protected again, also when this ends because time is up.
		return errors.Join(err, u.allow(context.WithoutCancel(ctx), crd, false))
	}
	if err := u.delete(ctx, crd); err != nil {
		return fmt.Errorf("delete CRD %s: %w", crd.Name, err)
	}
	return u.awaitGone(ctx, crd)
}

// allow says on the CRD whether it may be deleted.
func (u Uninstall) allow(ctx context.Context, crd *metav1.PartialObjectMetadata, allowed bool) error {
	patch := client.MergeFrom(crd.DeepCopy())
	if allowed {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, clusterv1alpha1.AllowDeletionAnnotation, "true")
	} else {
		delete(crd.Annotations, clusterv1alpha1.AllowDeletionAnnotation)
	}
	if err := u.Client.Patch(ctx, crd, patch); err != nil {
		return fmt.Errorf("annotate CRD %s: %w", crd.Name, err)
	}
	return nil
}

// awaitGone returns when there is no such CRD any more.
func (u Uninstall) awaitGone(ctx context.Context, crd *metav1.PartialObjectMetadata) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		err := u.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the end of CRD %s: %w", crd.Name, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: CRD %s is still there", ctx.Err(), crd.Name)
		}
	}
}

// releasePolicies deletes the policies that protect what is kept, and lets them go.
func (u Uninstall) releasePolicies(ctx context.Context) error {
	for _, kind := range policyKinds {
		policies := &metav1.PartialObjectMetadataList{}
		policies.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := u.Client.List(ctx, policies)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list policies: %w", err)
		}
		for i := range policies.Items {
			if err := u.releasePolicy(ctx, kind, &policies.Items[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s %s: %w", kind.Kind, policies.Items[i].Name, err)
			}
		}
	}
	return nil
}

// awaitRelease returns when the API server lets what is kept be deleted: it may go by a policy for
// some seconds after the policy is gone.
func (u Uninstall) awaitRelease(ctx context.Context) error {
	kept := &corev1.NamespaceList{}
	if err := u.Client.List(ctx, kept, client.MatchingLabels{clusterv1alpha1.KeptLabel: "true"}); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for i := range kept.Items {
		for {
			err := u.Client.Delete(ctx, &kept.Items[i], client.DryRunAll)
			// Whatever else it says is for who deletes the namespace, which may be going already.
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), namespacePolicy) {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", ctx.Err(), err)
			}
		}
	}
	return nil
}

// releasePolicy deletes one policy, if it is ours.
func (u Uninstall) releasePolicy(ctx context.Context, kind schema.GroupVersionKind, policy *metav1.PartialObjectMetadata) error {
	if !controllerutil.ContainsFinalizer(policy, clusterv1alpha1.KeptFinalizer) {
		return nil
	}
	policy.SetGroupVersionKind(kind)
	patch := client.MergeFrom(policy.DeepCopy())
	controllerutil.RemoveFinalizer(policy, clusterv1alpha1.KeptFinalizer)
	if err := u.Client.Patch(ctx, policy, patch); err != nil {
		return err
	}
	return u.delete(ctx, policy)
}

// delete deletes what is kept. The client cannot read the answer about a kind that is not in its
// scheme but as an unstructured object.
func (u Uninstall) delete(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	bare := &unstructured.Unstructured{}
	bare.SetGroupVersionKind(o.GroupVersionKind())
	bare.SetName(o.Name)
	return client.IgnoreNotFound(u.Client.Delete(ctx, bare, client.Preconditions{UID: new(o.UID)}))
}
