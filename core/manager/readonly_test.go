package manager

import (
	"net/http"
	"testing"
)

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
			_, err = lookOnly(next).RoundTrip(request) //nolint:bodyclose // it has none
			if asked != tc.want || (err == nil) != tc.want {
				t.Errorf("asked: %t, error: %v, want it to be let through: %t", asked, err, tc.want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
