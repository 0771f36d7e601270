package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines;machineclasses;clusters,verbs=get;list;watch

// Options are the choices of whoever wires the controllers together. Schema and Specs are
// required.
type Options struct {
	// Schema says which fields of a driver's specs are secret, once the driver was reached.
	Schema func(provider string) (specresolver.Schema, error)
	// Specs reads Secrets, and has their copies.
	Specs *specresolver.Resolver
	// Interval lies between two looks at all copies. Default 30 s.
	Interval time.Duration
	// Clock tells the time. Default: the real one.
	Clock clock.WithTicker
}

// Add adds the keeper of copies to mgr. It works on the leader only, once the caches are warm.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Interval == 0 {
		o.Interval = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return mgr.Add(&keeper{Options: o, cache: mgr.GetCache(), log: mgr.GetLogger().WithName("credentials")})
}

// keeper is a controller-runtime Runnable.
type keeper struct {
	Options
	cache cache.Cache
	log   logr.Logger
	// told is what was last logged, by the key of a use.
	told map[string]string
}

// NeedLeaderElection is true: only a leader writes copies.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start looks at all copies again and again until ctx ends.
func (k *keeper) Start(ctx context.Context) error {
	// It returns once the cache is in step, or ctx has ended: to a cold one no Machine needs a
	// copy.
	if _, err := k.cache.GetInformer(ctx, &clusterv1alpha1.Machine{}); err != nil {
		if ctx.Err() != nil {
			return nil // the process is on its way out
		}
		return fmt.Errorf("fill the cache of Machines: %w", err)
	}
	ticker := k.Clock.NewTicker(k.Interval)
	defer ticker.Stop()
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.log.Error(err, "Copies of credentials are not all in step")
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// look brings all copies in step with Machines and Secrets. Copies are listed before Machines: one
// that is made meanwhile is not on the list of those that may go.
func (k *keeper) look(ctx context.Context) error {
	copies, err := k.Specs.Copies(ctx)
	if err != nil {
		return err
	}
	uses, err := k.uses(ctx)
	if err != nil {
		return err
	}
	var failed error
	wanted, unclear, told := map[specresolver.Source]bool{}, map[string]bool{}, map[string]string{}
	for namespace, uses := range uses {
		home, err := k.Specs.NamespaceUID(ctx, namespace)
		for key, m := range uses {
			var sources []specresolver.Source
			useErr := err
			if useErr == nil {
				sources, useErr = k.renew(ctx, m, home)
			}
			for _, source := range sources {
				wanted[source] = true
			}
			if useErr != nil {
				// Its machines may need copies of what they were made with before.
				unclear[namespace], told[key] = true, useErr.Error()
				k.tell(m, key, useErr)
			}
		}
	}
	k.told = told
	for _, one := range copies {
		shared := one.Source.NamespaceUID == "" && len(unclear) > 0
		if !wanted[one.Source] && !unclear[one.Source.Namespace] && !shared {
			failed = errors.Join(failed, k.Specs.RemoveCopy(ctx, one))
		}
	}
	return failed
}

// tell logs why copies cannot be renewed, once for each reason.
func (k *keeper) tell(m *clusterv1alpha1.Machine, key string, err error) {
	if k.told[key] != err.Error() {
		k.log.Info("The copies of a Machine's Secrets cannot be renewed", "machine", client.ObjectKeyFromObject(m), "reason", err.Error())
	}
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
