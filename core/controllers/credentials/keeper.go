package credentials

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines;machineclasses;clusters,verbs=get;list;watch

// Options are the choices of whoever wires the controllers together. Schema and Specs are
// required.
type Options struct {
	// Schema says which fields of a driver's specs are secret, once the driver was reached.
	Schema func(provider string) (*providerspec.Schema, error)
	// Specs reads Secrets, and has their copies.
	Specs *specresolver.Resolver
	// Interval lies between two looks at all copies. Default 30 s.
	Interval time.Duration
}

// Add adds the keeper of copies to mgr. It works on the leader only.
func Add(mgr ctrl.Manager, o Options) error {
	k := &keeper{Options: o, cache: mgr.GetCache(), log: mgr.GetLogger().WithName("credentials")}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, k.look, cmp.Or(o.Interval, 30*time.Second))
		return nil
	}))
}

// keeper keeps copies in step with Machines and Secrets.
type keeper struct {
	Options
	// cache waits for the first answer of the API server: to an empty one no Machine needs a copy.
	cache client.Reader
	log   logr.Logger
	// logged are the last reasons why copies cannot be renewed, by the key of a use.
	logged map[string]string
}

// look brings all copies in step, and logs which it cannot.
func (k *keeper) look(ctx context.Context) {
	if err := k.update(ctx); err != nil && ctx.Err() == nil {
		k.log.Error(err, "Copies of credentials are not all in step")
	}
}

// update brings all copies in step with Machines and Secrets. Copies are listed before Machines:
// one that is made meanwhile is not on the list of those that may go.
func (k *keeper) update(ctx context.Context) error {
	copies, err := k.Specs.Copies(ctx)
	if err != nil {
		return err
	}
	uses, err := k.uses(ctx)
	if err != nil {
		return err
	}
	wanted, unclear, reasons := map[specresolver.Source]bool{}, map[string]bool{}, map[string]string{}
	for namespace, uses := range uses {
		home, homeErr := k.Specs.NamespaceUID(ctx, namespace)
		for key, m := range uses {
			var sources []specresolver.Source
			err := homeErr
			if err == nil {
				sources, err = k.renew(ctx, m, home)
			}
			for _, source := range sources {
				wanted[source] = true
			}
			if err == nil {
				continue
			}
			// Its machines may need copies of what they were made with before.
			unclear[namespace], reasons[key] = true, err.Error()
			if k.logged[key] != reasons[key] {
				k.log.Info("The copies of a Machine's Secrets cannot be renewed", "machine", client.ObjectKeyFromObject(m), "reason", reasons[key])
			}
		}
	}
	k.logged = reasons
	var failed error
	for _, one := range copies {
		shared := one.Source.NamespaceUID == "" && len(unclear) > 0
		if !wanted[one.Source] && !unclear[one.Source.Namespace] && !shared {
			failed = errors.Join(failed, k.Specs.RemoveCopy(ctx, one))
		}
	}
	return failed
}

// uses are Machines that have a VM or may have, and are made with Secrets: by namespace, and of
// those that are made from the same only one.
func (k *keeper) uses(ctx context.Context) (map[string]map[string]*clusterv1alpha1.Machine, error) {
	var machines clusterv1alpha1.MachineList
	if err := k.cache.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Machines that are made with Secrets: %w", err)
	}
	found := map[string]map[string]*clusterv1alpha1.Machine{}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Status.LastOperation == nil && m.Status.ProviderID == "" {
			continue
		}
		own := specresolver.Effective{Spec: m.Spec.ProviderSpec.Value.CloudProviderSpec.Raw}
		if _, secretless := specresolver.Secretless(own.Written(m.Status.ProviderSpec)); secretless && !specresolver.Inherits(&m.Spec) {
			continue
		}
		marked := foreign.Of(m) != (foreign.Mark{})
		key, err := json.Marshal([]any{m.Namespace, m.Spec.ProviderSpec, m.Spec.ClusterRef, m.Status.ProviderSpec, marked})
		if err != nil {
			return nil, fmt.Errorf("read the spec of Machine %s/%s: %w", m.Namespace, m.Name, err)
		}
		if found[m.Namespace] == nil {
			found[m.Namespace] = map[string]*clusterv1alpha1.Machine{}
		}
		found[m.Namespace][string(key)] = m
	}
	return found, nil
}

// renew has copies hold what the Secrets of a Machine hold, once the rules have passed for it, and
// returns which Secrets these are. With an error copies may be out of date, or not be there.
func (k *keeper) renew(ctx context.Context, m *clusterv1alpha1.Machine, home types.UID) ([]specresolver.Source, error) {
	effective, err := specresolver.Inherit(ctx, k.cache, m.Namespace, &m.Spec)
	if err != nil {
		return nil, err
	}
	effective = effective.Written(m.Status.ProviderSpec)
	sources, err := specresolver.Sources(effective, home)
	if err != nil || len(sources) == 0 || foreign.Of(m) != (foreign.Mark{}) {
		// Nothing is read for what another system works on.
		return sources, err
	}
	known, err := k.Schema(effective.Provider)
	if err != nil {
		return sources, err
	}
	checked, err := k.Specs.Check(ctx, effective, known)
	if err != nil {
		return sources, err
	}
	return sources, checked.Renew(ctx)
}
