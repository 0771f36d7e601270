package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheCacheKeepsOfNodesWhatIsRead(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "fake:///1", Unschedulable: true, PodCIDR: "10.1.0.0/24", PodCIDRs: []string{"10.1.0.0/24"}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue, Reason: "Full", Message: "It is full.", LastHeartbeatTime: metav1.Now()},
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Stopped", Message: "It is not there."},
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			Capacity:  corev1.ResourceList{}, Allocatable: corev1.ResourceList{},
			Images: []corev1.ContainerImage{{SizeBytes: 1}}, NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.3.7", OSImage: "Ubuntu", KernelVersion: "6", Architecture: "amd64",
				MachineID: "id", BootID: "id",
			},
		},
	}
	want := node.DeepCopy()
	want.ManagedFields, want.Spec.PodCIDR, want.Spec.PodCIDRs = nil, "", nil
	want.Status = corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, node.Status.Conditions[1]},
		Addresses:  node.Status.Addresses, NodeInfo: node.Status.NodeInfo,
	}
	want.Status.NodeInfo.MachineID, want.Status.NodeInfo.BootID = "", ""
	got, err := slimNode(node)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Node in the cache (-want +got):\n%s", diff)
	}
	if _, err := slimNode(&corev1.Pod{}); err == nil {
		t.Error("a pod is taken for a Node")
	}
}

func TestTheCacheKeepsOfRequestsWhatIsRead(t *testing.T) {
	pending := &certificatesv1.CertificateSigningRequest{
		Spec: certificatesv1.CertificateSigningRequestSpec{Username: "system:node:a", Request: []byte("request")},
	}
	decided := pending.DeepCopy()
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	decided.Status.Certificate = []byte("certificate")
	for _, request := range []*certificatesv1.CertificateSigningRequest{pending, decided} {
		want := request.DeepCopy()
		if request == decided {
			want.Spec.Request, want.Status.Certificate = nil, []byte("c")
		}
		request.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		got, err := slimRequest(request)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the request in the cache (-want +got):\n%s", diff)
		}
	}
	if _, err := slimRequest(&corev1.Pod{}); err == nil {
		t.Error("a pod is taken for a request")
	}
}

func TestTheCacheKeepsOfAttachmentsWhatIsRead(t *testing.T) {
	deleted, volume := metav1.Now(), "pv-1"
	want := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1", UID: "uid", ResourceVersion: "7", DeletionTimestamp: &deleted},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true, DetachError: &storagev1.VolumeError{Message: "the cloud is away"}},
	}
	whole := want.DeepCopy()
	whole.ManagedFields, whole.Annotations = []metav1.ManagedFieldsEntry{{Manager: "attacher"}}, map[string]string{"csi": "x"}
	whole.Finalizers = []string{"external-attacher/csi"}
	whole.Spec.Source.InlineVolumeSpec = &corev1.PersistentVolumeSpec{StorageClassName: "fast"}
	whole.Status.AttachmentMetadata = map[string]string{"device": "sdb"}
	whole.Status.AttachError, whole.Status.DetachError.Time = &storagev1.VolumeError{Message: "full"}, deleted
	got, err := slimAttachment(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the attachment in the cache (-want +got):\n%s", diff)
	}
	if _, err := slimAttachment(&corev1.Pod{}); err == nil {
		t.Error("a pod is taken for an attachment")
	}
}
