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

// What a driver makes without tags is found, since the whole cloud is looked at.
func TestALeakIsFound(t *testing.T) {
	s := newScene(t)
	cloud := fakecloudv1alpha1.NewCloudServiceClient(s.connect("cloud"))
	ctx, stop := context.WithCancel(context.Background())
	served, ready := make(chan error, 1), make(chan struct{})
	go func() {
		options := sdk.Options{Endpoint: s.endpoint("leaky"), Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }}
		served <- sdk.Serve(ctx, &leaky{driver.New("leaky", cloud), cloud}, options)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	<-ready
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
