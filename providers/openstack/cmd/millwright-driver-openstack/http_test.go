package main

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/conformance/faultproxy"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// The driver keeps to the contract while requests to OpenStack fail by a fault proxy before it. The
// simulator writes the address that a request came to into its catalog, so all services are reached
// through the proxy.
func TestConformanceBehindAFaultProxy(t *testing.T) {
	s := simulate(t, openstacksim.Options{World: openstacksim.DefaultWorld()})
	target, err := url.Parse(s.identityEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	proxy := faultproxy.New(slog.New(slog.DiscardHandler))
	relay, control := httptest.NewServer(proxy.Relay("1", target)), httptest.NewServer(proxy.Control())
	t.Cleanup(relay.Close)
	t.Cleanup(control.Close)
	c := config(t, cloud{
		identityEndpoint: relay.URL + "/v3", network: "demo-net", user: "demo", other: "alt", password: openstacksim.Password,
	})
	c.Endpoint, c.FaultProxy = launched(t, "--create-settle", "2s", "--poll-interval", "20ms"), control.URL
	c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 30*time.Second, 30*time.Second
	c.Profile, c.CloudPage = conformance.ProfileHTTP, 20
	conformance.Run(t, c)
}
