package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/rollout"
	"github.com/millwright-dev/millwright/cmd/tree"
	"github.com/millwright-dev/millwright/cmd/ui"
	"github.com/millwright-dev/millwright/core/driverstatus"
)

func uiCommand(where *cluster) *cobra.Command {
	var all, write bool
	var port int
	managers := managersNamespace
	command := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows MachineDeployments with all they own, live; Ctrl-C ends it",
		Long: `Serve a page on loopback that shows MachineDeployments with their MachineSets, Machines and Nodes, drivers and events, with your own rights.
The printed address lets in one browser, once. Nothing can be changed there without --write.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx := command.Context()
			namespace, err := where.namespace(all)
			if err != nil {
				return err
			}
			fleet, err := where.watch(ctx, namespace)
			if err != nil {
				return err
			}
			api, _, err := where.connect(clusterv1alpha1.AddToScheme, autoscalingv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme)
			if err != nil {
				return err
			}
			server := &ui.Server{Source: &source{fleet: fleet, api: api, managers: managers}}
			if write {
				server.Actor = actor{client.WithFieldOwner(api, "millwright-ui")}
			}
			listener, address, err := server.Listen(ctx, port)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(command.OutOrStdout(), "Open %s\n", address); err != nil {
				return errors.Join(err, listener.Close())
			}
			return server.Serve(ctx, listener)
		},
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Of all namespaces.")
	command.Flags().BoolVar(&write, "write", false, "Let the page scale, pause, restart and delete.")
	command.Flags().IntVar(&port, "port", 0, "The port on 127.0.0.1. 0: a free one.")
	command.Flags().StringVar(&managers, "manager-namespace", managers, "Where the manager is, which tells of its drivers.")
	return command
}

// source reads what the page shows.
type source struct {
	fleet    *watchedFleet
	api      client.Client
	managers string

	mu      sync.Mutex
	events  kept[[]eventsv1.Event]
	drivers kept[[]driverstatus.Driver]
}

// kept is what was read not long ago.
type kept[T any] struct {
	value T
	at    time.Time
}

// keep is for how long what is not watched is shown before it is read again.
const keep = 3 * time.Second

func (s *source) Fleet(ctx context.Context) (tree.Fleet, error) {
	return readFleet(ctx, s.fleet.reader, s.fleet.namespace)
}

func (s *source) Events(ctx context.Context) ([]eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events.get(func() ([]eventsv1.Event, error) {
		list := &eventsv1.EventList{}
		err := s.api.List(ctx, list, client.InNamespace(s.fleet.namespace), client.Limit(500))
		own := list.Items[:0]
		for i := range list.Items {
			if list.Items[i].Regarding.GroupVersionKind().Group == clusterv1alpha1.GroupVersion.Group {
				own = append(own, list.Items[i])
			}
		}
		return own, err
	})
}

func (s *source) Drivers(ctx context.Context) ([]driverstatus.Driver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drivers.get(func() ([]driverstatus.Driver, error) {
		published := &corev1.ConfigMap{}
		if err := s.api.Get(ctx, client.ObjectKey{Namespace: s.managers, Name: driverstatus.ConfigMapName}, published); err != nil {
			return nil, err
		}
		return driverstatus.Decode(published.Data)
	})
}

// get reads again what is old. What may not be read, or is not there, is left out.
func (k *kept[T]) get(read func() (T, error)) (T, error) {
	if time.Since(k.at) < keep {
		return k.value, nil
	}
	value, err := read()
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		var none T
		value, err = none, nil
	}
	if err == nil {
		k.value, k.at = value, time.Now()
	}
	return k.value, err
}

// actor changes objects as the person.
type actor struct{ api client.Client }

func (a actor) Scale(ctx context.Context, t ui.Target) (string, error) {
	return a.rollout(ctx, t, func(r rollout.Rollout) error { return r.Scale(ctx, t.Replicas) })
}

func (a actor) Pause(ctx context.Context, t ui.Target) (string, error) {
	return a.rollout(ctx, t, func(r rollout.Rollout) error { return r.Pause(ctx) })
}

func (a actor) Resume(ctx context.Context, t ui.Target) (string, error) {
	return a.rollout(ctx, t, func(r rollout.Rollout) error { return r.Resume(ctx) })
}

func (a actor) Restart(ctx context.Context, t ui.Target) (string, error) {
	return a.rollout(ctx, t, func(r rollout.Rollout) error { return r.Restart(ctx) })
}

// rollout changes the deployment that the person saw, not one that has its name by now.
func (a actor) rollout(ctx context.Context, t ui.Target, do func(rollout.Rollout) error) (string, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: t.Name}
	md := &clusterv1alpha1.MachineDeployment{}
	if err := a.api.Get(ctx, key, md); err != nil {
		return "", err
	}
	if string(md.UID) != t.UID {
		return "", fmt.Errorf("machinedeployment %q is another one by now", t.Name)
	}
	var said bytes.Buffer
	err := do(rollout.Rollout{Client: a.api, Key: key, Out: &said})
	return said.String(), err
}

func (a actor) Delete(ctx context.Context, t ui.Target) (string, error) {
	switch t.Kind {
	case "MachineDeployment", "MachineSet", "Machine":
	default:
		return "", fmt.Errorf("a %s cannot be deleted here", t.Kind)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind(t.Kind))
	object.SetNamespace(t.Namespace)
	object.SetName(t.Name)
	if err := a.api.Delete(ctx, object, client.Preconditions{UID: new(types.UID(t.UID))}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %q is being deleted", t.Kind, t.Name), nil
}
