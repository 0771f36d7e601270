package main

import (
	"time"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/story"
)

func describeCommand(where *cluster) *cobra.Command {
	return &cobra.Command{
		Use:   "describe MACHINE",
		Short: "Tell a Machine's story: its steps with their times, and the cloud's words",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			name, err := nameOf(args[0], "ma", "machine", "machines")
			if err != nil {
				return err
			}
			api, namespace, err := where.connect(clusterv1alpha1.AddToScheme, eventsv1.AddToScheme)
			if err != nil {
				return err
			}
			m := &clusterv1alpha1.Machine{}
			if err := api.Get(command.Context(), client.ObjectKey{Namespace: namespace, Name: name}, m); err != nil {
				return err
			}
			events := &eventsv1.EventList{}
			if err := api.List(command.Context(), events, client.InNamespace(namespace), client.MatchingFields{"regarding.uid": string(m.UID)}); err != nil {
				return err
			}
			return story.Tell(command.OutOrStdout(), m, events.Items, time.Now())
		},
	}
}
