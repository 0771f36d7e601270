package main

import (
	"log/slog"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/internal/reach"
)

// The mutant does what it is for: two VMs for its first machine, one for any other.
func TestDoublesOneCreate(t *testing.T) {
	client, closeCloud, err := reach.Cloud(t.Context(), slog.New(slog.DiscardHandler), reach.Target{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeCloud()
	mutant := newDoubling(client)
	if got, err := createOne(t, mutant, "first"); err != nil || len(got.GetDuplicateProviderIds()) != 1 {
		t.Errorf("first: %v, %v", got, err)
	}
	if got, err := createOne(t, mutant, "second"); err != nil || len(got.GetDuplicateProviderIds()) != 0 {
		t.Errorf("second: %v, %v", got, err)
	}
}

// createOne creates a machine and returns its status.
func createOne(t *testing.T, mutant *doubling, uid string) (*driverv1alpha1.Machine, error) {
	t.Helper()
	meta := &driverv1alpha1.RequestMeta{RequestId: "request", ClusterUid: "cluster"}
	ref := &driverv1alpha1.MachineRef{Namespace: "default", Name: uid, Uid: uid}
	provider := &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"flavor":"small","image":"ubuntu-24.04"}`)}
	if _, err := mutant.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{Meta: meta, Machine: ref, Provider: provider}); err != nil {
		return nil, err
	}
	return mutant.GetMachineStatus(t.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta, Machine: ref, Provider: provider})
}
