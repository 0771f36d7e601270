package driver

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// operator is the administrator of the real services.
type operator struct {
	*realServices
	compute, image *gophercloud.ServiceClient
	// faults is the file by which servers' builds on a host fail: see
	// test/openstack/python/fault_driver.py.
	faults string
}

func (r *realServices) operator() *operator {
	r.Helper()
	file := os.Getenv("MILLWRIGHT_OPENSTACK")
	raw, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	var deployed struct{ Faults string }
	if err := json.Unmarshal(raw, &deployed); err != nil || deployed.Faults == "" {
		r.Fatalf("%s names no file of faults: %v", file, err)
	}
	client, err := openstack.AuthenticatedClient(r.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: r.services.IdentityEndpoint, Username: r.services.Administrator, Password: r.services.Password, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: r.services.Administrator, DomainName: "Default"},
	})
	if err != nil {
		r.Fatal(err)
	}
	compute, err := openstack.NewComputeV2(client, gophercloud.EndpointOpts{Region: r.services.Region})
	if err != nil {
		r.Fatal(err)
	}
	compute.Microversion = "2.53"
	image, err := openstack.NewImageV2(client, gophercloud.EndpointOpts{Region: r.services.Region})
	if err != nil {
		r.Fatal(err)
	}
	return &operator{realServices: r, compute: compute, image: image, faults: deployed.Faults}
}

// breakBuilds has the next builds of the machine's server fail, also those of a move.
func (o *operator) breakBuilds() {
	o.Helper()
	rule := `[{"match": "` + o.owner.ServerName() + `", "fault": "abort", "words": "the disk is gone"}]`
	if err := os.WriteFile(o.faults, []byte(rule), 0o600); err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = os.Remove(o.faults) })
}

// forcedDown implements services.UpdateOptsBuilder: gophercloud's own cannot take it back.
type forcedDown bool

func (f forcedDown) ToServiceUpdateMap() (map[string]any, error) {
	return map[string]any{"forced_down": bool(f)}, nil
}

// loseHost tells Nova that the server's host is fenced, until the test is over.
func (o *operator) loseHost(id string) {
	o.Helper()
	found, err := servers.Get(o.Context(), o.compute, id).Extract()
	if err != nil {
		o.Fatal(err)
	}
	pages, err := services.List(o.compute, services.ListOpts{Binary: "nova-compute", Host: found.Host}).AllPages(o.Context())
	if err != nil {
		o.Fatal(err)
	}
	hosts, err := services.ExtractServices(pages)
	if err != nil || len(hosts) != 1 {
		o.Fatalf("hosts called %q: %v, %v", found.Host, hosts, err)
	}
	if err := services.Update(o.Context(), o.compute, hosts[0].ID, forcedDown(true)).Err; err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() {
		if err := services.Update(context.WithoutCancel(o.Context()), o.compute, hosts[0].ID, forcedDown(false)).Err; err != nil {
			o.Error(err)
		}
	})
}

// A server that has run is not failed, by whichever way it got into ERROR: it is STOPPED, with
// Nova's words, and runs again once Nova says so.
func TestWaysIntoErrorOnRealServices(t *testing.T) {
	for name, way := range map[string]struct {
		do func(o *operator, id string) error
		// words are in the message; empty for those that Nova has none for.
		words string
		// stays says that Nova does not put the server into ERROR.
		stays bool
	}{
		"a resize": {words: "the disk is gone", do: func(o *operator, id string) error {
			o.breakBuilds()
			return servers.Resize(o.Context(), o.compute, id, servers.ResizeOpts{FlavorRef: o.flavor("m1.small")}).ExtractErr()
		}},
		"a cold migration": {words: "the disk is gone", do: func(o *operator, id string) error {
			o.breakBuilds()
			return servers.Migrate(o.Context(), o.compute, id).ExtractErr()
		}},
		"a rebuild": {words: "the disk is gone", do: func(o *operator, id string) error {
			o.breakBuilds()
			image, err := o.in.ImageID(o.Context(), "image", "tiny-raw")
			if err != nil {
				return err
			}
			return servers.Rebuild(o.Context(), o.in.Compute, id, servers.RebuildOpts{ImageRef: image}).Err
		}},
		"an evacuation": {words: "the disk is gone", do: func(o *operator, id string) error {
			o.breakBuilds()
			o.loseHost(id)
			// gophercloud's own says more than Nova takes, and reads more than it answers.
			_, err := o.compute.Post(o.Context(), o.compute.ServiceURL("servers", id, "action"), map[string]any{"evacuate": map[string]any{}}, nil, //nolint:bodyclose // gophercloud closes it
				&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
			return err
		}},
		"an operator's reset": {do: func(o *operator, id string) error {
			return servers.ResetState(o.Context(), o.compute, id, servers.StateError).ExtractErr()
		}},
		"a host that is down": {stays: true, do: func(o *operator, id string) error {
			o.loseHost(id)
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := onRealServices(t, nil)
			r.owner.Name = "error-" + strings.ReplaceAll(name, " ", "-")
			o := r.operator()
			if _, err := r.settled(); err != nil {
				t.Fatal(err)
			}
			id := r.running()
			if err := way.do(o, id); err != nil {
				t.Fatal(err)
			}
			want := driverv1alpha1.MachineState_MACHINE_STATE_STOPPED
			if way.stays {
				want = driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
			}
			r.await("Nova's word for it", func() (bool, any) {
				m, err := r.status()
				if m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
					t.Fatalf("it counts as failed: %v", m)
				}
				return m.GetState() == want && strings.Contains(m.GetMessage(), way.words), []any{m, err}
			})
			if !way.stays {
				_ = os.Remove(o.faults)
				if err := servers.ResetState(t.Context(), o.compute, id, servers.StateActive).ExtractErr(); err != nil {
					t.Fatal(err)
				}
				if again := r.running(); again != id {
					t.Errorf("the server was %s and is %s", id, again)
				}
			}
			r.remove()
		})
	}
}

// running waits until the machine runs, and returns its server's id.
func (r *realServices) running() string {
	r.Helper()
	var m *driverv1alpha1.Machine
	r.await("it to run", func() (bool, any) {
		var err error
		m, err = r.status()
		return m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_RUNNING, []any{m, err}
	})
	return serverIDOf(&driverv1alpha1.DeleteMachineRequest{ProviderId: m.GetProviderId()})
}

// flavor returns the id of a flavor.
func (o *operator) flavor(name string) string {
	o.Helper()
	found, err := o.in.Flavor(o.Context(), "flavor", name)
	if err != nil {
		o.Fatal(err)
	}
	return found.ID
}
