package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
	"github.com/millwright-dev/millwright/transport/tracing/tracingtest"
)

// A create is one trace, from the reconcile that started it to the driver. Even at the highest
// verbosity neither side tells the secret that went with it. It is in no span, log, metric, event
// or condition, nor in what they print when they crash.
func TestOPS2_TracesCrossTheBoundaryAndTellNoSecret(t *testing.T) {
	tier.Long(t, "it starts manager and driver anew, again and again")
	t.Parallel()
	u := newUser(t)
	socket := filepath.Join(u.dir, "otlp.sock")
	collector, err := tracingtest.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Stop)
	verbosity := map[string]string{stack.Driver: "--log-level=DEBUG", stack.Manager: "--verbosity=10"}
	for _, name := range []string{stack.Driver, stack.Manager} {
		args := u.Process(name).Args()
		t.Cleanup(func() { u.restart(name, args) })
		u.restart(name, append(slices.Clone(args), verbosity[name], "--tracing-endpoint=unix://"+socket))
	}
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key="+canary)
	u.apply(deployment("traced", 1, nil))
	u.awaitTrace(collector)
	u.kubectl("delete", "machinedeployment", "traced")
	u.awaitGone()
	u.apply(deployment("secret", 1, map[string]string{"extra": ", key: {secretKeyRef: {name: cloud, key: key}}"}))
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonCredentialsInvalid, "")
	for _, span := range collector.Spans() {
		if strings.Contains(span.String(), canary) {
			t.Errorf("a span tells the secret: %s", span)
		}
	}
	families, err := u.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(families), canary) {
		t.Error("a metric tells the secret")
	}
	if out := u.kubectl("get", "machines,machinesets,machinedeployments,events", "-o", "yaml"); strings.Contains(out, canary) {
		t.Errorf("the secret is shown:\n%s", out)
	}
	for _, name := range []string{stack.Driver, stack.Manager} {
		process := u.Process(name)
		ended := process.Done()
		if err := process.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		<-ended
	}
	u.noCanaryInLogs()
	if text, err := os.ReadFile(u.Process(stack.Manager).LogPath()); err != nil || bytes.Contains(text, []byte(`"msg":"Response Body"`)) {
		t.Errorf("the manager logs the API server's answers, Secrets among them (%v)", err)
	}
	u.revive([]string{stack.Driver, stack.Manager})
	u.kubectl("delete", "machinedeployment", "secret")
	u.awaitGone()
}

// awaitTrace waits until a create's spans have arrived from both sides.
func (u *user) awaitTrace(collector *tracingtest.Collector) {
	u.t.Helper()
	const create = "millwright.driver.v1alpha1.MachineService/CreateMachine"
	find := func(spans []tracingtest.Span, service, name string, id []byte) (tracingtest.Span, error) {
		for _, s := range spans {
			if s.Service == service && s.GetName() == name && (id == nil || bytes.Equal(s.GetSpanId(), id)) {
				return s, nil
			}
		}
		return tracingtest.Span{}, fmt.Errorf("%d spans have come, none of %s: %s with id %x", len(spans), service, name, id)
	}
	eventually(u.t, "a create's trace", func(context.Context) error {
		spans := collector.Spans()
		served, err := find(spans, "fake", create, nil)
		if err != nil {
			return err
		}
		asked, err := find(spans, "millwright-manager", create, served.GetParentSpanId())
		if err != nil {
			return err
		}
		reconcile, err := find(spans, "millwright-manager", "reconcile Machine", asked.GetParentSpanId())
		if err != nil {
			return err
		}
		if asked.Attribute("millwright.machine.name") != reconcile.Attribute("millwright.machine.name") {
			return fmt.Errorf("a call for another machine than the reconcile's: %s, %s", asked, reconcile)
		}
		return nil
	})
}
