package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

func TestOPS2_WhichAnswersAreRepeated(t *testing.T) {
	const events, machines = "/apis/events.k8s.io/v1/namespaces/n/events", "/apis/cluster.k8s.io/v1alpha1/namespaces/n/machines"
	for name, tc := range map[string]struct {
		path     string
		status   int
		repeated bool
	}{
		"an Event that is written":                 {events, http.StatusCreated, false},
		"an Event that is there already":           {events, http.StatusConflict, false},
		"an Event in a namespace that goes":        {events, http.StatusForbidden, false},
		"an Event that is wrong":                   {events, http.StatusUnprocessableEntity, false},
		"an API server with an error of its own":   {events, http.StatusInternalServerError, true},
		"an API server that has too much to do":    {events, http.StatusTooManyRequests, true},
		"an etcd that does not answer":             {events, http.StatusGatewayTimeout, true},
		"an Event through a proxy with a path":     {"/k8s/clusters/c" + events, http.StatusServiceUnavailable, true},
		"what is no Event is its controller's own": {machines, http.StatusInternalServerError, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: tc.status, Body: io.NopCloser(strings.NewReader(""))}, nil
			})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server"+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := intercept(repeatEvents)(next).RoundTrip(request)
			if response != nil {
				_ = response.Body.Close()
			}
			if (err != nil) != tc.repeated {
				t.Errorf("got %v, want it to be repeated: %t", err, tc.repeated)
			}
		})
	}
}

func TestAnErrorOnTheWayStays(t *testing.T) {
	away := errors.New("nobody is there")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server"+eventPath, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	next := roundTripper(func(*http.Request) (*http.Response, error) { return nil, away })
	if _, err := intercept(repeatEvents)(next).RoundTrip(request); !errors.Is(err, away) { //nolint:bodyclose // there is none
		t.Errorf("got %v", err)
	}
}

// posts is an API server that has an error of its own for a while.
type posts struct {
	mu     sync.Mutex
	fail   int
	bodies []string
}

func (p *posts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies = append(p.bodies, string(body))
	w.Header().Set("Content-Type", "application/json")
	if len(p.bodies) <= p.fail {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

func (p *posts) had() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bodies
}

// The recorder of client-go writes an Event again, under the same name, that was answered with 500.
func TestOPS2_AnEventIsRepeatedUnderItsName(t *testing.T) {
	api := &posts{fail: 1}
	server := httptest.NewServer(api)
	defer server.Close()
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	config.Wrap(intercept(repeatEvents))
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	regarding := &corev1.ObjectReference{Kind: "Machine", APIVersion: "cluster.k8s.io/v1alpha1", Namespace: "n", Name: "m"}
	broadcaster.NewRecorder(nil, "test").Eventf(regarding, nil, corev1.EventTypeNormal, "Created", "Create", "made")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(api.had()) < 2 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it was written %d times", len(api.had()))
		}
	}
	if had := api.had(); had[0] != had[1] {
		t.Errorf("first %s\nthen  %s", had[0], had[1])
	}
}

func TestOPS10_WhatAManagerMayDoThatOnlyLooksOn(t *testing.T) {
	const ours = "/apis/cluster.k8s.io/v1alpha1/namespaces/n/"
	cases := map[string]struct {
		method, path string
		want         bool
	}{
		"read":                       {http.MethodGet, ours + "machines/m", true},
		"show a condition":           {http.MethodPatch, ours + "machinedeployments/d/status", true},
		"renew its Lease":            {http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/s/leases/millwright-manager", true},
		"take a Lease":               {http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/s/leases", true},
		"touch a Node's Lease":       {http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n", false},
		"check who reads metrics":    {http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", true},
		"ask what they may":          {http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
		"create a Machine":           {http.MethodPost, ours + "machines", false},
		"change a Machine":           {http.MethodPatch, ours + "machines/m", false},
		"delete a Machine":           {http.MethodDelete, ours + "machines/m", false},
		"delete a Machine by status": {http.MethodDelete, ours + "machines/m/status", false},
		"cordon a Node":              {http.MethodPatch, "/api/v1/nodes/n", false},
		"change a Node's status":     {http.MethodPut, "/api/v1/nodes/n/status", false},
		"evict a pod":                {http.MethodPost, "/api/v1/namespaces/n/pods/p/eviction", false},
		"tell of an event":           {http.MethodPost, "/apis/events.k8s.io/v1/namespaces/n/events", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := false
			next := roundTripper(func(*http.Request) (*http.Response, error) {
				asked = true
				return &http.Response{StatusCode: http.StatusOK}, nil
			})
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, err = intercept(refuseChanges)(next).RoundTrip(request) //nolint:bodyclose // it has none
			if asked != tc.want || (err == nil) != tc.want {
				t.Errorf("asked: %t, error: %v, want it to be let through: %t", asked, err, tc.want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
