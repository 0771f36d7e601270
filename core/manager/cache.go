package manager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions leave out of the cache what nobody reads: of a large fleet it would be most of the
// memory.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: slimNode}},
	}
}

// slimNode drops the parts of a Node that kubelets report at length: images alone are several KiB.
// What is written to Nodes are merge patches of other parts.
func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("a %T is in the cache of Nodes", object)
	}
	node.ManagedFields = nil
	node.Status.Images, node.Status.Capacity, node.Status.Allocatable = nil, nil, nil
	return node, nil
}
