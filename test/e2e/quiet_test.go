package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/tier"
)

// A Node whose container runtime hangs says something else with each heartbeat. Its Machine is not
// written to for that.
func TestOPS2_AKubeletsChangingWordsAreNotWritten(t *testing.T) {
	tier.Long(t, "it waits until nothing is written, twice")
	t.Parallel()
	const heartbeats = 60
	u := newUser(t)
	u.apply(standalone("hangs", ""))
	u.awaitRunning(1)
	u.heartbeat("hangs", "pleg was last seen active 3m0s ago")
	eventually(t, "the Machine to show that its Node is not Ready", func(context.Context) error {
		if m := u.machine(); !saysNodeNotReady(&m) {
			return fmt.Errorf("it says%s", words(m.Status.Conditions))
		}
		return nil
	})
	u.awaitQuiet(settling)
	before, since := u.machine(), time.Now()
	for beat := range heartbeats {
		u.heartbeat("hangs", fmt.Sprintf("pleg was last seen active 3m%ds ago", beat+1))
	}
	u.awaitQuiet(settling)
	if writes := u.writes(since); writes.Budgeted() > 0 {
		t.Errorf("%d heartbeats that say something else were worth these writes:\n%s", heartbeats, writes)
	}
	if after := u.machine(); after.ResourceVersion != before.ResourceVersion || !strings.Contains(words(after.Status.Conditions), "KubeletNotReady") {
		t.Errorf("the Machine was %s, is %s, and says%s", before.ResourceVersion, after.ResourceVersion, words(after.Status.Conditions))
	}
}

// saysNodeNotReady says whether the Machine shows its Node as not Ready.
func saysNodeNotReady(m *clusterv1alpha1.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1alpha1.ConditionNodeReady {
			return c.Reason == clusterv1alpha1.ReasonNodeNotReady
		}
	}
	return false
}

// heartbeat reports as the kubelet of a Machine's Node whose container runtime hangs.
func (u *user) heartbeat(machine, message string) {
	u.t.Helper()
	node, err := u.nodeOf(machine)
	if err != nil {
		u.t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []map[string]any{{
		"type": corev1.NodeReady, "status": corev1.ConditionFalse, "reason": "KubeletNotReady", "message": message,
		"lastHeartbeatTime": time.Now().UTC().Format(time.RFC3339),
	}}}})
	if err != nil {
		u.t.Fatal(err)
	}
	u.kubectl("patch", "node", node.Name, "--subresource=status", "--type=strategic", "-p", string(patch))
}

// brokenEvents has the API server answer each request about Events of a namespace with an error of
// its own.
const brokenEvents = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: broken-events
webhooks:
  - name: events.broken.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    timeoutSeconds: 1
    failurePolicy: Fail
    clientConfig: {url: "https://127.0.0.1:1/"}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
    rules:
      - {apiGroups: ["", events.k8s.io], apiVersions: ["*"], operations: ["*"], resources: [events]}
`

// Events that the API server answered with an error of its own are there once it has none any more,
// and once each.
func TestOPS2_EventsOutlastAnErrorOfTheAPIServer(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(fmt.Sprintf(brokenEvents, u.namespace))
	t.Cleanup(func() {
		_, _ = u.try(nil, "delete", "validatingwebhookconfiguration", "broken-events", "--ignore-not-found")
	})
	eventually(t, "the API server to refuse Events", func(context.Context) error {
		if out, err := u.try([]byte(probeEvent), "create", "-f", "-"); err == nil {
			_, _ = u.try(nil, "delete", "event", "probe")
			return fmt.Errorf("it takes them: %s", out)
		}
		return nil
	})
	since := time.Now()
	u.apply(standalone("told", ""))
	u.awaitRunning(1)
	eventually(t, "the manager's Events to be refused", func(context.Context) error {
		failures, err := audit.CountFailures(u.AuditLogPath(), stack.ManagerUser, since)
		if err == nil && failures.Of("events") < 2 {
			err = fmt.Errorf("the API server failed at %v", failures)
		}
		return err
	})
	u.kubectl("delete", "validatingwebhookconfiguration", "broken-events")
	eventually(t, "each Event once", func(ctx context.Context) error {
		var events corev1.EventList
		if err := u.client.List(ctx, &events, client.InNamespace(u.namespace)); err != nil {
			return err
		}
		had := map[string]int{}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "told" {
				had[e.Reason]++
			}
		}
		if had["Created"] != 1 || had["Running"] != 1 {
			return fmt.Errorf("there are %v", had)
		}
		return nil
	})
}

// probeEvent is an Event as anybody may make one.
const probeEvent = `{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "probe"}, "reason": "Probe", "type": "Normal",
  "involvedObject": {"kind": "Namespace", "name": "any"}}`
