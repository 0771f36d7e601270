package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/conformance/faultproxy"
	"github.com/millwright-dev/millwright/conformance/mutant"
	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/sdk"
)

// behindAProxy is what the harness tries a driver with that reaches its cloud through a fault
// proxy, and the driver's socket. VMs take deleteLatency to go.
func behindAProxy(t *testing.T, deleteLatency time.Duration) conformance.Config {
	t.Helper()
	api, _ := testCloud(t, deleteLatency)
	target, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.New(slog.New(slog.DiscardHandler))
	relay, control := httptest.NewServer(proxy.Relay("1", target)), httptest.NewServer(proxy.Control())
	t.Cleanup(relay.Close)
	t.Cleanup(control.Close)
	dir, err := os.MkdirTemp("", "proxied") // not t.TempDir: a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := "unix://" + filepath.Join(dir, "d.sock")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served, ready := make(chan error, 1), make(chan struct{})
	go func() {
		served <- sdk.Serve(ctx, &driver{endpoint: relay.URL, http: http.DefaultClient}, sdk.Options{
			Endpoint: socket, Log: slog.New(slog.NewTextHandler(log, nil)), Ready: func() { close(ready) },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	<-ready
	c := config(t)
	c.Endpoint, c.FaultProxy, c.DriverLog, c.DriverFiles = socket, control.URL, log.Name(), []string{dir}
	return c
}

// A cloud that has no hooks fails by a fault proxy before its API.
func TestConformanceBehindAFaultProxy(t *testing.T) {
	c := behindAProxy(t, 0)
	c.Profile = conformance.ProfileHTTP
	conformance.Run(t, c)
}

// slowToGo is how long VMs take to go for mutants that are careless in a delete's later calls: the
// driver deletes a NIC when its VM has gone.
var slowToGo = map[string]time.Duration{"careless-in-later-calls": 30 * time.Millisecond}

// What a broken driver does while requests fail is caught.
func TestBrokenDriversAreCaughtBehindAFaultProxy(t *testing.T) {
	for _, m := range mutant.All() {
		if !m.Proxy {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			c := behindAProxy(t, slowToGo[m.Name])
			conn, err := grpc.NewClient(c.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			path := filepath.Join(filepath.Dir(c.DriverLog), "mutant.sock")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			server := mutant.NewServer(m, conn)
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			c.Endpoint, c.Focus = "unix://"+path, []string{m.Check}
			report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
			if report == nil {
				t.Fatal(err)
			}
			if report.Verdict() != conformance.Breaks {
				t.Errorf("%s does not catch it: %+v", m.Check, report.Results)
			}
			t.Logf("caught: %+v", report.Results)
		})
	}
}

// A proxy before the cloud answers in no JSON: its status counts.
func TestAnswersOfAProxy(t *testing.T) {
	for code, want := range map[int]sdk.ErrorReason{
		http.StatusTooManyRequests: sdk.ReasonRateLimited, http.StatusUnauthorized: sdk.ReasonCredentialsInvalid,
		http.StatusNotFound: sdk.ReasonProviderInternal, http.StatusBadGateway: sdk.ReasonOutcomeUnknown,
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte("<html>no"))
		}))
		t.Cleanup(proxy.Close)
		_, err := client{http: http.DefaultClient, endpoint: proxy.URL}.call(t.Context(), http.MethodDelete, "/v1/vms/x", nil)
		if got := contract.ParseReason(contract.ErrorInfo(status.Convert(err)).GetReason()); got != want {
			t.Errorf("%d is %s, want %s (%v)", code, got, want, err)
		}
	}
}

// Why the cloud did not answer is told, in words that stay from call to call.
func TestWhyTheCloudDidNotAnswer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	foreign := httptest.NewUnstartedServer(http.NotFoundHandler())
	foreign.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	foreign.StartTLS()
	t.Cleanup(foreign.Close)
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	for endpoint, want := range map[string]string{
		gone.URL: "connection refused", foreign.URL: "certificate signed by unknown authority", cut.URL: "EOF",
	} {
		for range 2 {
			_, err := client{http: http.DefaultClient, endpoint: endpoint, token: "opens default"}.call(t.Context(), http.MethodGet, "/v1/vms", nil)
			if got := status.Convert(err).Message(); !strings.HasSuffix(got, want+".") {
				t.Errorf("%s: it says %q, want %q", endpoint, got, want)
			}
		}
	}
}

// A NIC that shows only in the second look is deleted as well, before nothing is said to be left.
func TestDeleteRemovesWhatTheSecondLookShows(t *testing.T) {
	looks, deleted := 0, ""
	tags := `"tags": {"millwright-namespace": "ns", "millwright-name": "m"}`
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{}`
		switch {
		case r.Method == http.MethodDelete:
			deleted += r.URL.Path
		case r.URL.Path == "/v1/vms":
			if looks++; looks == 1 {
				answer = `{"vms": [{"id": "vm", ` + tags + `}]}`
			}
		case looks > 1:
			answer = `{"nics": [{"id": "nic", ` + tags + `}]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(api.Close)
	d := &driver{endpoint: api.URL, http: http.DefaultClient}
	left, err := d.DeleteMachine(t.Context(), &sdk.DeleteMachineRequest{
		Meta: &sdk.RequestMeta{ClusterUid: "c"}, Machine: &sdk.MachineRef{Namespace: "ns", Name: "m", Uid: "u"}, Provider: &sdk.ProviderContext{ProviderSpec: []byte("{}")},
	})
	if err != nil || left != nil || deleted != "/v1/vms/vm/v1/nics/nic" {
		t.Errorf("%v is left (%v), deleted was %s", left, err, deleted)
	}
}
