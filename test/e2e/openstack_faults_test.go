package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/conformance/faultproxy"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	services "github.com/millwright-dev/millwright/test/openstack/deployment"
	"github.com/millwright-dev/millwright/test/tier"
)

// trouble is what goes wrong with real services while Machines are made.
type trouble struct {
	name string
	// begin has it go wrong until t ends.
	begin func(t *testing.T, u *openStackUser, d *services.Deployment)
	// says are the words that some Machine has for it while it lasts; empty: nobody has to notice.
	says string
	// lasts is how long it lasts where nobody has to notice.
	lasts time.Duration
	// replaces says that Machines of which the server has failed are replaced.
	replaces bool
}

// Whatever goes wrong with the real services while Machines are made, Machines say it in the
// services' words. Once the services are well again, all ends well by itself. Machines that ran
// stay, each has one server, and nothing is left behind.
func TestSAFE7_OpenStackServicesFail(t *testing.T) {
	tier.Long(t, "it takes real services")
	t.Parallel()
	d := services.Open(t)
	const compute, network = "18774", "19696"
	for _, tc := range []trouble{
		{name: "quota of ports", begin: limited("port", 3), says: "Quota exceeded for resources: ['port']"},
		{name: "quota of floating IPs", begin: limited("floatingip", 1), says: "Quota exceeded for resources: ['floatingip']"},
		{name: "build aborted", begin: failing(services.Fault{Fault: "abort", Times: 2}), says: "aborted", replaces: true},
		{name: "both hosts refuse", begin: failing(services.Fault{Fault: "reschedule"}), says: "Exceeded maximum number of retries", replaces: true},
		{name: "slow build", begin: failing(services.Fault{Fault: "slow", Seconds: 20}), lasts: 10 * time.Second},
		{name: "hosts paused", begin: paused("nova-compute-compute1", "nova-compute-compute2"), lasts: 15 * time.Second},
		{name: "hosts killed", begin: killed("nova-compute-compute1", "nova-compute-compute2"), lasts: 10 * time.Second, replaces: true},
		{name: "Keystone killed", begin: together(killed("keystone"), loggedOut), says: "502"},
		{name: "Keystone paused", begin: together(paused("keystone"), loggedOut), lasts: 15 * time.Second},
		{name: "tokens of 12 s", begin: together(loggedOut, shortLived), lasts: 30 * time.Second},
		{name: "too many requests", begin: broken(faultproxy.Rule{
			Method: http.MethodPost, Port: compute, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "3"},
		}), says: "429"},
		{name: "answers to POST /ports lost", begin: lost(network, "/ports$"), lasts: 15 * time.Second},
		{name: "answers to POST /servers lost", begin: lost(compute, "/servers$"), lasts: 15 * time.Second},
		{name: "answers to POST /floatingips lost", begin: lost(network, "/floatingips$"), lasts: 15 * time.Second},
		{name: "Neutron killed", begin: killed("neutron-server"), says: "502"},
		{name: "database paused", begin: paused("mariadb"), lasts: 15 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.survived(t, d) })
	}
}

func (tc trouble) survived(t *testing.T, d *services.Deployment) {
	u := newOpenStackUser(t)
	before := len(u.inventory(t.Context()))
	u.apply(u.onMetaKube("calm", 1, ""))
	u.awaitRunning(1)
	old := u.uids()
	t.Run("while it lasts", func(t *testing.T) {
		tc.begin(t, u, d)
		u.kubectl("scale", "machinedeployment", "calm", "--replicas=3")
		if tc.says == "" {
			u.checkStays(tc.lasts, old)
			return
		}
		eventually(t, fmt.Sprintf("a machine to say %q", tc.says), func(context.Context) error {
			said := ""
			for _, m := range u.machines() {
				said += "; " + m.Name + words(m.Status.Conditions)
			}
			if !strings.Contains(said, tc.says) {
				return fmt.Errorf("they say %s", said)
			}
			return nil
		})
		u.checkKept(old)
	})
	made := u.uids()
	u.awaitRunning(3)
	u.checkKept(old)
	if !tc.replaces {
		u.checkKept(made)
	}
	u.checkOneVMEach()
	if n := len(u.inventory(t.Context())); n != before+3*3 {
		t.Errorf("there are %d things in the project, want %d: %v", n, before+3*3, u.inventory(t.Context()))
	}
}

// checkStays watches for a while: the Machines with these uids stay.
func (u *openStackUser) checkStays(long time.Duration, uids []string) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), long)
	defer cancel()
	<-ctx.Done()
	u.checkKept(uids)
}

// What services do wrong, until the test ends.

func limited(kind string, limit int64) func(*testing.T, *openStackUser, *services.Deployment) {
	return func(t *testing.T, u *openStackUser, _ *services.Deployment) {
		set := func(limit int64) {
			request := &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{kind: limit}}
			if _, err := u.Backend().SetQuota(context.WithoutCancel(t.Context()), request); err != nil {
				t.Fatalf("set the cloud's quota: %v", err)
			}
		}
		t.Cleanup(func() { set(-1) })
		set(limit)
	}
}

func failing(faults ...services.Fault) func(*testing.T, *openStackUser, *services.Deployment) {
	return func(t *testing.T, _ *openStackUser, d *services.Deployment) { d.Fail(t, faults...) }
}

func paused(processes ...string) func(*testing.T, *openStackUser, *services.Deployment) {
	return func(t *testing.T, _ *openStackUser, d *services.Deployment) {
		for _, p := range processes {
			d.Pause(t, p)
		}
	}
}

func killed(processes ...string) func(*testing.T, *openStackUser, *services.Deployment) {
	return func(t *testing.T, _ *openStackUser, d *services.Deployment) {
		for _, p := range processes {
			d.Kill(t, p)
		}
	}
}

func broken(rules ...faultproxy.Rule) func(*testing.T, *openStackUser, *services.Deployment) {
	return func(t *testing.T, _ *openStackUser, d *services.Deployment) { d.Break(t, rules...) }
}

// lost has the answers lost to the next calls that make something.
func lost(port, path string) func(*testing.T, *openStackUser, *services.Deployment) {
	return broken(faultproxy.Rule{Method: http.MethodPost, Port: port, Path: path, Drop: "after", Times: 3})
}

// together begins with the last.
func together(all ...func(*testing.T, *openStackUser, *services.Deployment)) func(*testing.T, *openStackUser, *services.Deployment) {
	return func(t *testing.T, u *openStackUser, d *services.Deployment) {
		for _, begin := range slices.Backward(all) {
			begin(t, u, d)
		}
	}
}

// shortLived has Keystone give tokens for 12 s.
func shortLived(t *testing.T, _ *openStackUser, d *services.Deployment) {
	short := *d
	short.Environment = append(slices.Clone(d.Environment), "OPENSTACK_TOKEN_EXPIRATION=12")
	d.Kill(t, "keystone")
	short.Up(t)
	t.Cleanup(func() { d.Kill(t, "keystone") })
}

// loggedOut has the driver log in again: its sessions go with its process.
func loggedOut(t *testing.T, u *openStackUser, _ *services.Deployment) {
	if err := u.Process(stack.Driver).Kill(); err != nil {
		t.Fatalf("kill the driver: %v", err)
	}
	u.revive([]string{stack.Driver})
}

// A server that cannot be destroyed at first goes at the next attempt; one whose build hangs goes
// with the host's next start.
func TestLIFE7_OpenStackServersThatStick(t *testing.T) {
	tier.Long(t, "it takes real services")
	t.Parallel()
	d := services.Open(t)
	t.Run("destruction fails", func(t *testing.T) {
		u := newOpenStackUser(t)
		before := len(u.inventory(t.Context()))
		u.apply(u.onMetaKube("sticky", 2, ""))
		u.awaitRunning(2)
		d.Fail(t, services.Fault{Fault: "destroy", Times: 2})
		u.kubectl("scale", "machinedeployment", "sticky", "--replicas=0")
		u.awaitGone()
		if n := len(u.inventory(t.Context())); n != before {
			t.Errorf("there are %d things in the project, want %d", n, before)
		}
	})
	t.Run("build hangs", func(t *testing.T) {
		u := newOpenStackUser(t)
		t.Run("while it lasts", func(t *testing.T) {
			d.Fail(t, services.Fault{Fault: "hang", Times: 1})
			u.apply(u.onMetaKube("hung", 1, "\n      nodeStartupTimeout: 20s"))
			eventually(t, "the machine to be given up", func(context.Context) error {
				if !slices.ContainsFunc(u.machines(), func(m clusterv1alpha1.Machine) bool { return !m.DeletionTimestamp.IsZero() }) {
					return fmt.Errorf("%d machines are not", len(u.machines()))
				}
				return nil
			})
		})
		// What hangs does so until its host is started anew.
		for _, host := range []string{"nova-compute-compute1", "nova-compute-compute2"} {
			d.Kill(t, host)
		}
		d.Up(t)
		u.awaitRunning(1)
		u.checkOneVMEach()
	})
}
