package ownership

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Index finds MachineSets and Machines in the cache by the uid of their controller, or by NoOwner.
const Index = "owner"

// NoOwner is the key of objects that no controller owns.
const NoOwner = "none"

// AddIndex adds Index to a cache. Several controllers share it, so it has to be there before they
// are added.
func AddIndex(ctx context.Context, cache client.FieldIndexer) error {
	for _, kind := range []client.Object{&clusterv1alpha1.MachineSet{}, &clusterv1alpha1.Machine{}} {
		if err := cache.IndexField(ctx, kind, Index, IndexKey); err != nil {
			return fmt.Errorf("index %T by %s: %w", kind, Index, err)
		}
	}
	return nil
}

// IndexKey is the uid of the object's controller, or NoOwner.
func IndexKey(o client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{NoOwner}
}
