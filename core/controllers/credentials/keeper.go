package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines;machineclasses;clusters,verbs=get;list;watch

// Options are the choices of whoever wires the controllers together. Drivers and Specs are
// required.
type Options struct {
	// Drivers say which fields of specs are secret.
	Drivers *driver.Drivers
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
}

// NeedLeaderElection is true: only a leader writes copies.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start looks at all copies again and again until ctx ends.
func (k *keeper) Start(ctx context.Context) error {
	// It returns once the cache is in step, or ctx has ended: to a cold one no Machine needs a copy.
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
	began := k.Clock.Now()
	copies, err := k.Specs.Copies(ctx)
	if err != nil {
		return err
	}
	uses, err := k.uses(ctx)
	if err != nil {
		return err
	}
	wanted, unclear := map[specresolver.Source]bool{}, map[string]bool{}
	var failed error
	for _, u := range uses {
		sources, err := k.sources(ctx, u)
		if err != nil {
			k.log.V(1).Info("Cannot tell which Secrets a Machine is made with", "machine", client.ObjectKeyFromObject(u.machine), "error", err)
			unclear[u.machine.Namespace] = true
		}
		for _, source := range sources {
			wanted[source] = true
		}
		failed = errors.Join(failed, k.renew(ctx, u))
	}
	// Where it is not clear what a Machine is made with, it may need any copy that it may refer to.
	isWanted := func(s specresolver.Source) bool {
		return wanted[s] || unclear[s.Namespace] || s.NamespaceUID == "" && len(unclear) > 0
	}
	return errors.Join(failed, k.Specs.RemoveCopies(ctx, copies, isWanted, began))
}

// use stands for all Machines of a namespace that are made from the same.
type use struct {
	machine *clusterv1alpha1.Machine
	// begun: one of them has a VM, or may have.
	begun bool
}

// uses are those of all Machines that are made with Secrets.
func (k *keeper) uses(ctx context.Context) (map[string]*use, error) {
	var machines clusterv1alpha1.MachineList
	if err := k.cache.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Machines that are made with Secrets: %w", err)
	}
	found := map[string]*use{}
	for i := range machines.Items {
		m := &machines.Items[i]
		own := specresolver.Effective{Spec: m.Spec.ProviderSpec.Value.CloudProviderSpec.Raw}
		if _, secretless := specresolver.Secretless(own.Written(m.Status.ProviderSpec)); secretless && !specresolver.Inherits(&m.Spec) {
			continue
		}
		marked := foreign.Of(m) != (foreign.Mark{})
		key, err := json.Marshal([]any{m.Namespace, m.Spec.ProviderSpec, m.Spec.ClusterRef, m.Status.ProviderSpec, marked})
		if err != nil {
			return nil, fmt.Errorf("read the spec of Machine %s/%s: %w", m.Namespace, m.Name, err)
		}
		known, has := found[string(key)]
		if !has {
			known = &use{machine: m}
			found[string(key)] = known
		}
		// Nothing is read for a Machine that another system works on.
		known.begun = known.begun || !marked && (m.Status.LastOperation != nil || m.Status.ProviderID != "")
	}
	return found, nil
}

// sources are the Secrets of a use: by what was written down of its Machines, and by what they would
// be made from now.
func (k *keeper) sources(ctx context.Context, u *use) ([]specresolver.Source, error) {
	inherited, err := specresolver.Inherit(ctx, k.cache, u.machine.Namespace, &u.machine.Spec)
	if err != nil {
		return nil, err
	}
	now, err := k.Specs.Sources(ctx, inherited)
	if err != nil {
		return now, err
	}
	written, err := k.Specs.Sources(ctx, inherited.Written(u.machine.Status.ProviderSpec))
	return append(now, written...), err
}

// renew has the copies of a use hold what its Secrets hold, once the rules have passed for it.
func (k *keeper) renew(ctx context.Context, u *use) error {
	if !u.begun {
		return nil
	}
	m := u.machine
	effective, err := specresolver.Inherit(ctx, k.cache, m.Namespace, &m.Spec)
	if err != nil {
		return unlessShown(err)
	}
	effective = effective.Written(m.Status.ProviderSpec)
	d, err := k.Drivers.For(effective.Provider)
	if err != nil {
		return nil //nolint:nilerr // the Machine shows it
	}
	var known specresolver.Schema
	if known.Known, known.Why, err = d.SpecSchema(); err != nil {
		return nil //nolint:nilerr // the driver was not reached yet
	}
	checked, err := k.Specs.Check(ctx, effective, known)
	if err == nil {
		err = checked.Keep(ctx)
	}
	return unlessShown(err)
}

// unlessShown returns nil for what Machines show.
func unlessShown(err error) error {
	if _, is := errors.AsType[*instance.Failure](err); is {
		return nil
	}
	return err
}
