package manager

import (
	"bytes"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions leave out of the cache what nobody reads: of a large fleet it would be most of the
// memory.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {Transform: slimNode}, &certificatesv1.CertificateSigningRequest{}: {Transform: slimRequest},
			&storagev1.VolumeAttachment{}: {Transform: slimAttachment},
		},
	}
}

// slimRequest drops what a certificate request that is decided asked for, and of the certificate
// all but a byte, which says that there is one: it is kept an hour by kube-controller-manager, to
// be counted.
func slimRequest(object any) (any, error) {
	request, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil, fmt.Errorf("a %T is in the cache of certificate requests", object)
	}
	request.ManagedFields = nil
	if len(request.Status.Conditions) > 0 {
		request.Spec.Request = nil
		request.Status.Certificate = bytes.Clone(request.Status.Certificate[:min(1, len(request.Status.Certificate))])
	}
	return request, nil
}

// slimNode drops what kubelets report of a Node. It keeps its addresses, what Machines show of its
// software, and its conditions: of those but Ready only what health checks look at. Images alone
// are several KiB. Nothing dropped is missed by a write: Nodes are written by merge patches of
// other parts.
func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("a %T is in the cache of Nodes", object)
	}
	node.ManagedFields = nil
	node.Spec.PodCIDR, node.Spec.PodCIDRs = "", nil
	said := node.Status.NodeInfo
	kept := corev1.NodeStatus{Addresses: node.Status.Addresses, NodeInfo: corev1.NodeSystemInfo{
		KubeletVersion: said.KubeletVersion, ContainerRuntimeVersion: said.ContainerRuntimeVersion,
		OSImage: said.OSImage, KernelVersion: said.KernelVersion, Architecture: said.Architecture,
	}}
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			c = corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
		}
		kept.Conditions = append(kept.Conditions, c)
	}
	node.Status = kept
	return node, nil
}

// slimAttachment keeps which volume is attached to which Node, and why it cannot be detached. An
// inline volume is one without a PersistentVolume: what else is said of it is dropped.
func slimAttachment(object any) (any, error) {
	a, ok := object.(*storagev1.VolumeAttachment)
	if !ok {
		return nil, fmt.Errorf("a %T is in the cache of VolumeAttachments", object)
	}
	kept := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion, DeletionTimestamp: a.DeletionTimestamp},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: a.Spec.Attacher, NodeName: a.Spec.NodeName,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: a.Status.Attached},
	}
	if failed := a.Status.DetachError; failed != nil {
		kept.Status.DetachError = &storagev1.VolumeError{Message: failed.Message}
	}
	return kept, nil
}
