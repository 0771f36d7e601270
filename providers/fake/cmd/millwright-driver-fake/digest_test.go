package main

import (
	"context"
	"sync"
	"testing"

	"github.com/millwright-dev/millwright/conformance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/driver"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
)

// digesting is a driver of a cloud whose labels are too short for namespaces and names: it cannot
// list them, and lists the uid in their place. deletes says whether it deletes by such a ref.
type digesting struct {
	*driver.Driver
	deletes bool
	refs    sync.Map
}

func (d *digesting) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	d.refs.LoadOrStore(r.GetMachine().GetUid(), r.GetMachine())
	return d.Driver.CreateMachine(ctx, r)
}

func (d *digesting) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	ref := r.GetMachine()
	made, isMade := d.refs.Load(ref.GetUid())
	if d.deletes && isMade && ref.GetNamespace() == ref.GetUid() && ref.GetName() == ref.GetUid() {
		r.Machine = made.(*driverv1alpha1.MachineRef)
	}
	m, err := d.Driver.DeleteMachine(ctx, r)
	if m != nil {
		m.Ref = ref
	}
	return m, err
}

func (d *digesting) ListMachines(ctx context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	listed, err := d.Driver.ListMachines(ctx, r)
	for _, m := range listed.GetMachines() {
		uid := m.GetRef().GetUid()
		m.Ref = &driverv1alpha1.MachineRef{Namespace: uid, Name: uid, Uid: uid}
	}
	return listed, err
}

// A driver that stores a digest of namespace and name keeps to the contract if it deletes by the
// ref that it lists.
func TestDigestsOfNames(t *testing.T) {
	s := newScene(t)
	cloud := fakecloudv1alpha1.NewCloudServiceClient(s.connect("cloud"))
	for name, want := range map[string]conformance.Outcome{"deleting": conformance.Passed, "refusing": conformance.Failed} {
		s.serveDriver(name, &digesting{Driver: driver.New(name, cloud), deletes: want == conformance.Passed})
		c := s.config()
		c.Endpoint, c.Focus = s.endpoint(name), []string{"list"}
		report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range report.Results {
			isMine := result.ID == "list/nameless"
			if isMine && result.Outcome != want || !isMine && result.Outcome == conformance.Failed {
				t.Errorf("%s: %s %s %v", name, result.ID, result.Outcome, result.Breaches)
			}
		}
	}
}
