package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/millwright-dev/millwright/conformance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/driver"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// leaky makes a NIC for each create that nothing says whose it is.
type leaky struct {
	*driver.Driver
	cloud fakecloudv1alpha1.CloudServiceClient
}

func (l *leaky) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	if _, err := l.cloud.CreateNIC(ctx, &fakecloudv1alpha1.CreateNICRequest{Name: "spare"}); err != nil {
		return nil, err
	}
	return l.Driver.CreateMachine(ctx, r)
}

// serveDriver serves a driver at the endpoint of a name until the test ends.
func (s *scene) serveDriver(name string, d sdk.Driver) {
	s.Helper()
	ctx, stop := context.WithCancel(context.Background())
	served, ready := make(chan error, 1), make(chan struct{})
	go func() {
		served <- sdk.Serve(ctx, d, sdk.Options{
			Endpoint: s.endpoint(name), Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
		})
	}()
	s.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			s.Error(err)
		}
	})
	<-ready
}

// What a driver makes without tags is found, since the whole cloud is looked at.
func TestALeakIsFound(t *testing.T) {
	s := newScene(t)
	cloud := fakecloudv1alpha1.NewCloudServiceClient(s.connect("cloud"))
	s.serveDriver("leaky", &leaky{driver.New("leaky", cloud), cloud})
	c := s.config()
	c.Endpoint, c.Focus = s.endpoint("leaky"), []string{"create", "delete"}
	report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range report.Results {
		if found := result.Outcome == conformance.Failed; found != (result.ID == "create/marked") {
			t.Errorf("%s: %s %v", result.ID, result.Outcome, result.Breaches)
		}
	}
	if report.Verdict() != conformance.Breaks {
		t.Errorf("the verdict is %s", report.Verdict())
	}
}
