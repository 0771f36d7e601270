package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// watchedFleet is read from a cache that watches keep current.
type watchedFleet struct {
	reader client.Reader
	// namespace is the one that is watched; empty for all.
	namespace string
}

// watch watches the fleet of a namespace, empty for all, until ctx ends.
func (c *cluster) watch(ctx context.Context, namespace string) (*watchedFleet, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return nil, err
	}
	// What may not be read is told at once; the cache would try for ever.
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if _, err := readFleet(ctx, api, namespace); err != nil {
		return nil, err
	}
	go func() { _ = watched.Start(ctx) }() // it ends with ctx
	for _, kind := range []client.Object{&clusterv1alpha1.MachineDeployment{}, &clusterv1alpha1.MachineSet{}, &clusterv1alpha1.Machine{}} {
		if _, err := watched.GetInformer(ctx, kind); err != nil {
			return nil, ignoreInterrupt(ctx, err)
		}
	}
	return &watchedFleet{reader: watched, namespace: namespace}, nil
}

// ignoreInterrupt returns no error if the person has ended the command.
func ignoreInterrupt(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}
