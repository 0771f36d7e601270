package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/conformance/mutant"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// config is what the harness tries the driver with.
func (s *scene) config() conformance.Config {
	return conformance.Config{
		Endpoint: s.endpoint("driver"), Backend: s.endpoint("cloud"), State: s.TempDir(),
		ProviderSpec:    []byte(`{"flavor":"small","image":"ubuntu-24.04"}`),
		ConflictingSpec: []byte(`{"flavor":"large","image":"ubuntu-24.04"}`),
		BadSecrets:      map[string]conformance.Secret{"key": {Value: "opens nothing"}},
		OtherSecrets:    map[string]conformance.Secret{"key": {Value: otherKey}},
	}
}

// The driver keeps to the contract, as a process of its own on a cloud that serves its hooks.
func TestConformance(t *testing.T) {
	s := newScene(t)
	s.start()
	conformance.Run(t, s.config())
}

// Each rule of the contract that is broken is caught by the check that stands for it.
func TestMutantsAreCaught(t *testing.T) {
	s := newScene(t)
	s.start()
	for _, m := range mutant.All() {
		t.Run(m.Name, func(t *testing.T) {
			c := s.config()
			c.Endpoint, c.Focus = s.mutate(t, m), []string{m.Check}
			c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 2*time.Second, 2*time.Second
			report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
			if report == nil {
				t.Fatal(err)
			}
			if len(report.Results) != 1 || report.Results[0].Outcome != conformance.Failed {
				t.Errorf("%s does not catch it: %+v", m.Check, report.Results)
			}
		})
	}
}

// mutate serves the driver as a mutant until the test ends, and returns where.
func (s *scene) mutate(t *testing.T, m mutant.Mutant) string {
	t.Helper()
	listener, err := socket.Listen(s.endpoint(m.Name))
	if err != nil {
		t.Fatal(err)
	}
	server := mutant.NewServer(m, s.connect("driver"))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s.endpoint(m.Name)
}

// A check that no mutant can make fail would prove nothing.
func TestEachCheckCanFail(t *testing.T) {
	// The fake driver does not announce the feature.
	untried := []string{"spec/template"}
	for _, c := range conformance.Checks() {
		caught := slices.ContainsFunc(mutant.All(), func(m mutant.Mutant) bool { return m.Check == c.ID })
		if caught == slices.Contains(untried, c.ID) {
			t.Errorf("%s: has a mutant, and is on the list of those without: both are %v", c.ID, caught)
		}
	}
}

// asHarness makes the test's own executable a harness that runs with this config, as JSON.
const asHarness = "DRIVER_FAKE_TEST_AS_HARNESS"

// harness prints the id of its run.
func harness(config string) int {
	var c conformance.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	_, err := conformance.Execute(context.Background(), c, conformance.Observer{Begin: func(runID string) { fmt.Println(runID) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A run that is killed while the cloud makes a VM leaves nothing once it was cleaned up after, and nothing else is touched.
func TestNothingIsLeftOfAKilledRun(t *testing.T) {
	s := newScene(t)
	s.start()
	c := s.config()
	s.hold("CreateVM", backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT)
	if _, err := s.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: "theirs", ClusterUid: "another", MachineUid: "theirs",
	}}); err != nil {
		t.Fatal(err)
	}
	c.Focus = []string{"create/happy"}
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), asHarness+"="+string(config)), t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	runID := lines.Text()
	s.await(t.Context(), func(one *backendv1alpha1.Call) bool { return one.GetDone() })
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if _, err := s.hooks.RemoveFaults(t.Context(), &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		t.Fatal(err)
	}
	if n, err := conformance.Clean(t.Context(), c, runID); err != nil || n != 1 {
		t.Errorf("cleaned up after %d machines: %v", n, err)
	}
	left, err := s.hooks.ListResources(t.Context(), &backendv1alpha1.ListResourcesRequest{})
	if err != nil || slices.ContainsFunc(left.GetResources(), func(r *backendv1alpha1.Resource) bool { return r.GetClusterUid() != "another" }) ||
		len(left.GetResources()) == 0 {
		t.Errorf("left are %v (%v)", left.GetResources(), err)
	}
	if _, err := conformance.Clean(t.Context(), c, runID); err == nil {
		t.Error("cleaned up again: the journal is still there")
	}
}
