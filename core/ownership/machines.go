package ownership

import (
	"context"
	"fmt"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// machineIndex finds Machines by their namespace and controller.
const machineIndex = "namespace-and-owner"

func machineIndexKeys(object any) ([]string, error) {
	m, is := object.(*clusterv1alpha1.Machine)
	if !is {
		return nil, fmt.Errorf("a %T is in the cache of Machines", object)
	}
	return []string{machineIndexKey(m.Namespace, ownerOf(m))}, nil
}

func machineIndexKey(namespace, owner string) string { return namespace + "/" + owner }

// Machines reads Machines from a cache that has the indexes of AddIndexes. A list of the cache's
// client copies each Machine's struct, which was a third of all that the manager allocated. What
// Machines returns are the cache's own: for reading only.
type Machines struct{ cache cache.Cache }

// NewMachines reads that cache.
func NewMachines(from cache.Cache) Machines { return Machines{cache: from} }

// Of returns the Machines of a namespace whose controller has the uid owner, or, for NoOwner, those
// that have none.
func (m Machines) Of(ctx context.Context, namespace, owner string) ([]*clusterv1alpha1.Machine, error) {
	indexer, err := m.indexer(ctx)
	if err != nil {
		return nil, err
	}
	if indexer != nil {
		return find(indexer, machineIndex, machineIndexKey(namespace, owner))
	}
	all, err := m.list(ctx, namespace)
	return slices.DeleteFunc(all, func(machine *clusterv1alpha1.Machine) bool { return ownerOf(machine) != owner }), err
}

// In returns all Machines of a namespace.
func (m Machines) In(ctx context.Context, namespace string) ([]*clusterv1alpha1.Machine, error) {
	indexer, err := m.indexer(ctx)
	if err != nil {
		return nil, err
	}
	if indexer != nil {
		return find(indexer, toolscache.NamespaceIndex, namespace)
	}
	return m.list(ctx, namespace)
}

// indexer is where the cache keeps Machines, once it has all. It is nil for a cache that is limited
// to some namespaces, as those of tests are: it keeps each of them by itself.
func (m Machines) indexer(ctx context.Context) (toolscache.Indexer, error) {
	informer, err := m.cache.GetInformer(ctx, &clusterv1alpha1.Machine{})
	if err != nil {
		return nil, fmt.Errorf("read the cache of Machines: %w", err)
	}
	if one, is := informer.(toolscache.SharedIndexInformer); is {
		return one.GetIndexer(), nil
	}
	return nil, nil
}

func find(in toolscache.Indexer, index, key string) ([]*clusterv1alpha1.Machine, error) {
	objects, err := in.ByIndex(index, key)
	if err != nil {
		return nil, fmt.Errorf("read the cache of Machines: %w", err)
	}
	machines := make([]*clusterv1alpha1.Machine, 0, len(objects))
	for _, object := range objects {
		if m, is := object.(*clusterv1alpha1.Machine); is {
			machines = append(machines, m)
		}
	}
	return machines, nil
}

func (m Machines) list(ctx context.Context, namespace string) ([]*clusterv1alpha1.Machine, error) {
	var list clusterv1alpha1.MachineList
	if err := m.cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	machines := make([]*clusterv1alpha1.Machine, 0, len(list.Items))
	for i := range list.Items {
		machines = append(machines, &list.Items[i])
	}
	return machines, nil
}
