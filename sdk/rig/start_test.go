package rig

import (
	"context"
	"fmt"
	"strings"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// sawmill answers what a test decides.
type sawmill struct {
	machine *driverv1alpha1.Machine
	err     error
	page    []*driverv1alpha1.Machine
}

func (s *sawmill) Info() sdk.Info {
	return sdk.Info{Name: "sawmill", Version: "v1", ProviderIDPrefix: "sawmill:///"}
}

func (s *sawmill) CreateMachine(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	return s.machine, s.err
}

func (s *sawmill) GetMachineStatus(context.Context, *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	return s.machine, s.err
}

func (s *sawmill) DeleteMachine(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	return s.machine, s.err
}

func (s *sawmill) ListMachines(context.Context, *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	return &driverv1alpha1.ListMachinesResponse{Machines: s.page}, s.err
}

// recorder notes what would have failed a test.
type recorder struct {
	testing.TB
	found []string
}

func (r *recorder) Errorf(format string, arguments ...any) {
	r.found = append(r.found, fmt.Sprintf(format, arguments...))
}

func machine(change func(*driverv1alpha1.Machine)) *driverv1alpha1.Machine {
	m := &driverv1alpha1.Machine{
		Ref: &driverv1alpha1.MachineRef{Namespace: "default", Name: "m", Uid: "u"}, ClusterUid: "c1",
		ProviderId: "sawmill:///1", State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}
	change(m)
	return m
}

func as(*driverv1alpha1.Machine) {}

// call makes all four calls and returns the errors by RPC.
func call(t *testing.T, r *recorder, driver sdk.Driver) map[string]error {
	t.Helper()
	machines := driverv1alpha1.NewMachineServiceClient(Start(r, driver))
	meta := &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: "c1"}
	ref := &driverv1alpha1.MachineRef{Namespace: "default", Name: "m", Uid: "u"}
	provider := &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{}`)}
	errs := map[string]error{}
	_, errs["CreateMachine"] = machines.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{Meta: meta, Machine: ref, Provider: provider})
	_, errs["GetMachineStatus"] = machines.GetMachineStatus(t.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta, Machine: ref, Provider: provider})
	_, errs["DeleteMachine"] = machines.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: meta, Machine: ref, Provider: provider})
	_, errs["ListMachines"] = machines.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta, Provider: provider, PageSize: 1})
	return errs
}

func TestBreachesAreFound(t *testing.T) {
	deleting := machine(func(m *driverv1alpha1.Machine) { m.State = driverv1alpha1.MachineState_MACHINE_STATE_DELETING })
	notFound := sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "gone")
	cases := map[string]struct {
		driver sawmill
		want   map[string]string // what is found, by RPC
	}{
		"none": {sawmill{machine: deleting, page: []*driverv1alpha1.Machine{machine(as)}}, nil},
		"another machine": {
			sawmill{machine: machine(func(m *driverv1alpha1.Machine) {
				m.Ref.Uid = "v"
				m.State = driverv1alpha1.MachineState_MACHINE_STATE_DELETING
			})},
			map[string]string{"CreateMachine": "machine.ref", "GetMachineStatus": "machine.ref", "DeleteMachine": "machine.ref"},
		},
		"no state": {
			sawmill{machine: machine(func(m *driverv1alpha1.Machine) { m.State = 0 })},
			map[string]string{"CreateMachine": "machine.state", "GetMachineStatus": "machine.state", "DeleteMachine": "machine.state"},
		},
		"a delete that leaves a running machine": {sawmill{machine: machine(as)}, map[string]string{"DeleteMachine": "DELETING"}},
		"a delete that finds nothing":            {sawmill{err: notFound}, map[string]string{"DeleteMachine": "NOT_FOUND"}},
		"another cluster's machine in a list": {
			sawmill{machine: deleting, page: []*driverv1alpha1.Machine{machine(func(m *driverv1alpha1.Machine) { m.ClusterUid = "c2" })}},
			map[string]string{"ListMachines": "cluster_uid"},
		},
		"a foreign provider_id in a list": {
			sawmill{machine: deleting, page: []*driverv1alpha1.Machine{machine(func(m *driverv1alpha1.Machine) { m.ProviderId = "oak:///1" })}},
			map[string]string{"ListMachines": "sawmill:///"},
		},
		"a machine twice on a page that is too long": {
			sawmill{machine: deleting, page: []*driverv1alpha1.Machine{machine(as), machine(as)}},
			map[string]string{"ListMachines": "page_size"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			call(t, r, &tc.driver)
			found := map[string]string{}
			for _, line := range r.found {
				rpc, breach, _ := strings.Cut(line, " breaks the contract: ")
				found[rpc] += breach + "\n"
			}
			for rpc, want := range tc.want {
				if !strings.Contains(found[rpc], want) {
					t.Errorf("%s: found %q, want a breach that names %s", rpc, found[rpc], want)
				}
				delete(found, rpc)
			}
			for rpc, breach := range found {
				t.Errorf("%s: found what is no breach: %s", rpc, breach)
			}
		})
	}
}
