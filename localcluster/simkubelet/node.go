package simkubelet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/millwright-dev/millwright/localcluster"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// newNode returns the Node that a VM registers: what the kubelet says of itself, and what a cloud
// controller manager would add. A Node's status is honoured on create, so that one write makes it
// Ready.
func (f *Fleet) newNode(vm *backendv1alpha1.VM, config kubeletConfig, now time.Time) *corev1.Node {
	name := cmp.Or(config.nodeName, vm.GetName())
	labels := map[string]string{
		corev1.LabelHostname:      name,
		corev1.LabelOSStable:      "linux",
		corev1.LabelArchStable:    runtime.GOARCH,
		kubeletapis.LabelOS:       "linux", // Old, but node-lifecycle would add what is missing: a write a Node.
		kubeletapis.LabelArch:     runtime.GOARCH,
		localcluster.KubeletLabel: localcluster.KubeletRunning,
	}
	for key, value := range map[string]string{
		corev1.LabelTopologyRegion:     vm.GetRegion(),
		corev1.LabelTopologyZone:       vm.GetZone(),
		corev1.LabelInstanceTypeStable: vm.GetInstanceType(),
	} {
		if value != "" {
			labels[key] = value
		}
	}
	maps.Copy(labels, config.labels)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.NodeSpec{
			ProviderID: cmp.Or(config.providerID, vm.GetProviderId()),
			Taints:     config.taints,
		},
		Status: corev1.NodeStatus{
			Capacity:    f.options.Capacity,
			Allocatable: f.options.Capacity,
			Addresses:   addresses(vm, name),
			Conditions:  readyConditions(now),
			NodeInfo: corev1.NodeSystemInfo{
				MachineID:               vm.GetId(),
				SystemUUID:              vm.GetId(),
				BootID:                  fmt.Sprintf("%s-%d", vm.GetId(), now.UnixNano()),
				KernelVersion:           "6.8.0-simulated",
				OSImage:                 "Ubuntu 24.04 LTS (simulated)",
				ContainerRuntimeVersion: "containerd://2.0.0-simulated",
				KubeletVersion:          cmp.Or(config.version, f.options.KubeletVersion),
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
			},
		},
	}
	if config.externalCloud {
		leaveToCloud(node)
	}
	return node
}

// leaveToCloud has a Node look as it does before its cloud controller manager has seen it.
func leaveToCloud(node *corev1.Node) {
	for _, label := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable} {
		delete(node.Labels, label)
	}
	node.Spec.ProviderID = ""
	node.Spec.Taints = append(slices.Clone(node.Spec.Taints),
		corev1.Taint{Key: uninitializedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule})
}

// uninitializedTaint is cloudproviderapi.TaintExternalCloudProvider of k8s.io/cloud-provider.
const uninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized"

func addresses(vm *backendv1alpha1.VM, hostname string) []corev1.NodeAddress {
	result := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: hostname}}
	for _, a := range vm.GetAddresses() {
		address := corev1.NodeAddress{Type: corev1.NodeAddressType(a.GetType()), Address: a.GetAddress()}
		if address != result[0] {
			result = append(result, address)
		}
	}
	return result
}

// readyConditions are a healthy kubelet's, in its words.
func readyConditions(now time.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available", now),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure", now),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available", now),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", now),
	}
}

// shutdownConditions are those of a kubelet that shuts down gracefully.
func shutdownConditions(now time.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "node is shutting down", now)}
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}

// nodeRef is a Node as it once was. Its uid tells it from a later Node of the same name. Its
// version, unless it is empty, tells it from the same Node at a later time.
type nodeRef struct {
	name    string
	uid     types.UID
	version string
}

// kubeletPatch returns a strategic merge patch of a Node's status that says whether its kubelet
// runs, and leaves alone conditions that are not given. The API server refuses it for another Node
// of the same name: see isGone.
func kubeletPatch(ref nodeRef, running bool, conditions []corev1.NodeCondition) ([]byte, error) {
	var label any // null takes it off.
	if running {
		label = localcluster.KubeletRunning
	}
	metadata := map[string]any{"uid": ref.uid, "labels": map[string]any{localcluster.KubeletLabel: label}}
	if ref.version != "" {
		metadata["resourceVersion"] = ref.version
	}
	patch := map[string]any{"metadata": metadata}
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

// heardOf is when the Node's kubelet last said how the Node is.
func heardOf(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

// kubeletRuns says whether a Node shows a kubelet that runs: nothing needs to be written then.
func kubeletRuns(node *corev1.Node) bool {
	if node.Labels[localcluster.KubeletLabel] != localcluster.KubeletRunning {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
