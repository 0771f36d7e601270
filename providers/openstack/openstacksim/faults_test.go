package openstacksim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

const words = "The saw blade is blunt."

func errorFault(name backendv1alpha1.NamedError, match *backendv1alpha1.FaultMatch) *backendv1alpha1.Fault {
	return &backendv1alpha1.Fault{
		Match: match, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Error: &backendv1alpha1.FaultError{Name: name, Message: words},
	}
}

func TestErrorsSpeakAsTheServicesDo(t *testing.T) {
	portBody := `{"port": {"network_id": "%s", "name": "ns/n/a", "description": "` + ownership.ClusterDescription(cluster) + `"}}`
	serverBody := `{"server": {"name": "n", "imageRef": "%s", "flavorRef": "%s", "networks": "none", "metadata": {"millwright-cluster": "c1", "millwright-machine": "a"}}}`
	for _, test := range []struct {
		name     string
		error    backendv1alpha1.NamedError
		nova     int
		novaKind string
		neutron  int
		kind     string
	}{
		{"quota", backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, 403, "forbidden", 409, "OverQuota"},
		{"capacity", backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY, 409, "conflictingRequest", 409, "IpAddressGenerationFailure"},
		{"credentials", backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, 401, "error", 401, ""},
		{"permission", backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION, 403, "forbidden", 403, "PolicyNotAuthorized"},
		{"rate limit", backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT, 429, "overLimit", 429, ""},
		{"internal", backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, 500, "computeFault", 500, "HTTPInternalServerError"},
		{"unavailable", backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE, 503, "title", 503, ""},
		{"dependency", backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY, 400, "badRequest", 404, "NetworkNotFound"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := open(t, Options{})
			w.inject(errorFault(test.error, &backendv1alpha1.FaultMatch{MachineUid: "a"}))
			got := w.call("POST", "/networking/v2.0/ports", strings.Replace(portBody, "%s", networkID(w), 1))
			kind, _ := got.body["NeutronError"].(map[string]any)
			if got.status != test.neutron || test.kind != "" && kind["type"] != test.kind || !strings.Contains(got.raw, words) {
				t.Errorf("Neutron: %d %s", got.status, got.raw)
			}
			got = w.call("POST", "/compute/v2.1/servers", strings.Replace(strings.Replace(serverBody, "%s", imageID(w), 1), "%s", flavorID("m1.tiny"), 1))
			if got.status != test.nova || got.body[test.novaKind] == nil || !strings.Contains(got.raw, words) {
				t.Errorf("Nova: %d %s", got.status, got.raw)
			}
			if retry := got.header.Get("Retry-After"); (retry != "") != (test.nova == 429) {
				t.Errorf("Retry-After: %q", retry)
			}
			w.removeFaults()
			w.machine("a")
		})
	}
}

func TestCreationErrorsLetOtherCallsPass(t *testing.T) {
	w := open(t, Options{})
	fault := errorFault(backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, nil)
	fault.Times = 1
	w.inject(fault)
	if _, err := servers.List(w.compute, nil).AllPages(t.Context()); err != nil {
		t.Errorf("a list: %v", err)
	}
	if _, err := w.createPort("a"); !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		t.Errorf("a creation: %v", err)
	}
	if _, err := w.createPort("a"); err != nil {
		t.Errorf("a creation when the fault is used up: %v", err)
	}
}

func TestCredentialsStrikeTheRepeatedCallToo(t *testing.T) {
	for _, times := range []int32{0, 1} {
		w := open(t, Options{})
		fault := errorFault(backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, &backendv1alpha1.FaultMatch{Operation: "ListServers"})
		fault.Times = times
		w.inject(fault)
		if _, err := servers.List(w.compute, nil).AllPages(t.Context()); !gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			t.Errorf("times %d: %v", times, err)
		}
		_, err := servers.List(w.compute, nil).AllPages(t.Context())
		if refused := gophercloud.ResponseCodeIs(err, http.StatusUnauthorized); refused != (times == 0) {
			t.Errorf("times %d, the next call: %v", times, err)
		}
	}
}

func TestAnswerLost(t *testing.T) {
	w := open(t, Options{})
	w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST, Match: &backendv1alpha1.FaultMatch{Operation: api.CreatePort}, Times: 1})
	if _, err := w.createPort("a"); !errors.Is(err, io.EOF) {
		t.Errorf("the call: %v", err)
	}
	if _, err := w.createPort("a"); !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		t.Errorf("the call again: %v", err)
	}
	calls := w.calls(api.CreatePort, "a")
	if len(calls) != 2 || !calls[0].GetDone() || calls[0].GetProgress() != testcloud.Abandoned || len(calls[0].GetFaultIds()) != 1 || calls[1].GetDone() {
		t.Errorf("the ledger: %v", calls)
	}
}

func (w *world) calls(operation, machine string) []*backendv1alpha1.Call {
	w.Helper()
	found, err := w.hooks.ListCalls(w.Context(), &backendv1alpha1.ListCallsRequest{Operation: operation, MachineUid: machine})
	if err != nil {
		w.Fatalf("list calls: %v", err)
	}
	return found.GetCalls()
}

func TestHoldOutlivesItsCaller(t *testing.T) {
	for _, point := range []backendv1alpha1.FaultPoint{testcloud.BeforeEffect, testcloud.AfterEffect} {
		w := open(t, Options{})
		w.inject(&backendv1alpha1.Fault{
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Point: point, Match: &backendv1alpha1.FaultMatch{Operation: api.CreatePort, MachineUid: "a"},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			o := ownerOf("a")
			_, err := neutronports.Create(ctx, w.network, neutronports.CreateOpts{
				NetworkID: networkID(w), Name: o.PortName(), Description: ownership.ClusterDescription(o.Cluster),
			}).Extract()
			ended <- err
		}()
		w.eventually("the call is held", func() bool {
			return w.last(api.CreatePort) != nil && w.last(api.CreatePort).Done == (point == testcloud.AfterEffect)
		})
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v: the caller: %v", point, err)
		}
		w.eventually("the caller is known to have gone", func() bool { return w.last(api.CreatePort).Progress == testcloud.Abandoned })
		w.removeFaults()
		w.eventually("the call takes effect", func() bool { return w.last(api.CreatePort).Done && !w.last(api.CreatePort).Answered.IsZero() })
		if n := w.left("a"); n != 1 {
			t.Errorf("%v: %d ports", point, n)
		}
	}
}

// last is the last call of an operation; the caller holds the lock.
func (w *world) last(operation string) *testcloud.Call {
	var found *testcloud.Call
	for _, one := range w.cloud.front.Ledger.Ordered() {
		if one.Operation == operation && (found == nil || one.Sequence > found.Sequence) {
			found = one
		}
	}
	return found
}

func TestHangEndsWithItsCaller(t *testing.T) {
	w := open(t, Options{})
	w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Match: &backendv1alpha1.FaultMatch{MachineUid: "a"}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.try(ctx, "GET", "/compute/v2.1/servers/detail?tags="+ownership.ClusterTag(cluster)+"&tags-any="+ownership.MachineTag("b")+","+ownership.MachineTag("a"), "")
		ended <- err
	}()
	w.eventually("the call hangs", func() bool { return w.last("ListServers") != nil })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller: %v", err)
	}
	w.eventually("the call is abandoned", func() bool { return w.last("ListServers").Progress == testcloud.Abandoned })
	if calls := w.calls("ListServers", "b"); len(calls) != 1 || calls[0].GetDone() {
		t.Errorf("a list for two machines, asked for by one: %v", calls)
	}
}

func TestLatency(t *testing.T) {
	w := open(t, Options{})
	w.inject(&backendv1alpha1.Fault{
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY, Latency: &backendv1alpha1.FaultLatency{Min: durationpb.New(30 * time.Millisecond)},
	})
	began := time.Now()
	w.call("GET", "/compute/v2.1/servers", "")
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("the call took %s", took)
	}
}

func TestBoots(t *testing.T) {
	for _, test := range []struct {
		name   string
		effect backendv1alpha1.FaultEffect
		status string
		fault  string
	}{
		{"never ends", backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS, "BUILD", ""},
		{"fails", backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS, "ERROR", words},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := open(t, Options{})
			w.inject(&backendv1alpha1.Fault{Effect: test.effect, Error: &backendv1alpha1.FaultError{Message: words}, Match: &backendv1alpha1.FaultMatch{MachineUid: "a"}})
			portID, serverID := w.machine("a")
			s, err := servers.Get(t.Context(), w.compute, serverID).Extract()
			if err != nil || s.Status != test.status || s.Fault.Message != test.fault {
				t.Errorf("server: %+v, %v", s, err)
			}
			if err := servers.Delete(t.Context(), w.compute, serverID).ExtractErr(); err != nil {
				t.Errorf("delete: %v", err)
			}
			p, err := neutronports.Get(t.Context(), w.network, portID).Extract()
			if err != nil || p.DeviceID != "" {
				t.Errorf("port: %+v, %v", p, err)
			}
		})
	}
}

func TestListsCanBeBehind(t *testing.T) {
	for _, test := range []struct{ operation, path, collection string }{
		{"ListServers", "/compute/v2.1/servers/detail", "servers"},
		{"ListPorts", "/networking/v2.0/ports?device_owner=compute:nova", "ports"},
	} {
		w := open(t, Options{})
		w.machine("old")
		w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE, Match: &backendv1alpha1.FaultMatch{Operation: test.operation}})
		w.machine("new")
		listed := func() int {
			all, _ := w.call("GET", test.path, "").body[test.collection].([]any)
			return len(all)
		}
		if n := listed(); n != 1 {
			t.Errorf("%s: a list that is behind has %d", test.operation, n)
		}
		w.removeFaults()
		if n := listed(); n != 2 {
			t.Errorf("%s: a list has %d", test.operation, n)
		}
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	w := serve(t, Options{})
	for name, fault := range map[string]*backendv1alpha1.Fault{
		"no effect":         {},
		"unknown operation": {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Match: &backendv1alpha1.FaultMatch{Operation: "CreateVM"}},
		"no error":          {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR},
		"probability":       {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Probability: 2},
		"times":             {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Times: -1},
	} {
		if _, err := w.hooks.InjectFault(t.Context(), &backendv1alpha1.InjectFaultRequest{Fault: fault}); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestFaultsSkipCallsAndEnd(t *testing.T) {
	w := open(t, Options{})
	fault := errorFault(backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, &backendv1alpha1.FaultMatch{Operation: "ListServers"})
	fault.Skip, fault.Times = 1, 2
	w.inject(fault)
	for n, want := range []int{200, 500, 500, 200} {
		if got := w.call("GET", "/compute/v2.1/servers", ""); got.status != want {
			t.Errorf("call %d: %d", n, got.status)
		}
	}
	if left, err := w.hooks.ListFaults(t.Context(), nil); err != nil || len(left.GetFaults()) != 0 {
		t.Errorf("faults that are used up: %v, %v", left, err)
	}
}
