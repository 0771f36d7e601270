package main

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// rule is one of a PrometheusRule, as the Prometheus operator reads it.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func read(t *testing.T) map[string]rule {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/alerts/prometheus_rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Spec struct {
			Groups []struct{ Rules []rule }
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]rule{}
	for _, group := range file.Spec.Groups {
		for _, r := range group.Rules {
			found[r.Alert] = r
		}
	}
	return found
}

// Each alert fires when what it warns of has lasted, not before, and for none of the healthy.
func TestOPS6_EachAlertFires(t *testing.T) {
	alerts := read(t)
	for name, tc := range map[string]struct {
		// sick are samples of a minute each, in the notation of Prometheus; healthy are those of a
		// fleet that is well.
		sick, healthy string
		// after is when it fires, and summary what it says then.
		after   time.Duration
		summary string
	}{
		"MillwrightMeltdown": {
			sick: `millwright_fleet_meltdown{pod="a"} 1x60`, healthy: `millwright_fleet_meltdown{pod="a"} 0x60`,
			after: 2 * time.Minute, summary: "Too many Machines are unhealthy",
		},
		"MillwrightDriverDown": {
			// The replica that does not lead is connected to none.
			sick:    `millwright_driver_up{driver="openstack",pod="a"} 0x60`,
			healthy: "millwright_driver_up{driver=\"openstack\",pod=\"a\"} 1x60\nmillwright_driver_up{driver=\"openstack\",pod=\"b\"} 0x60",
			after:   5 * time.Minute, summary: "no connection to driver openstack",
		},
		"MillwrightBreakerOpen": {
			sick:    `millwright_driver_breakers{driver="openstack",class="Quota"} 2x60`,
			healthy: `millwright_driver_breakers{driver="openstack",class="Quota"} 0x60`,
			after:   15 * time.Minute, summary: "holds back calls for 2 accounts and operations: Quota",
		},
		"MillwrightRolloutStuck": {
			sick:    `millwright_machinedeployment_progress_deadlines_exceeded_total 0x5 1x55`,
			healthy: `millwright_machinedeployment_progress_deadlines_exceeded_total 1x60`,
			after:   6 * time.Minute, summary: "has not got on",
		},
		"MillwrightOvershoot": {
			sick: `millwright_machineset_freezes_total 0x5 1x55`, healthy: `millwright_machineset_freezes_total 1x60`,
			after: 6 * time.Minute, summary: "far too many of its Machines",
		},
		"MillwrightOrphansHeld": {
			sick:    `millwright_orphans{driver="openstack",state="held"} 3x90`,
			healthy: "millwright_orphans{driver=\"openstack\",state=\"held\"} 0x90\nmillwright_orphans{driver=\"openstack\",state=\"due\"} 9x90",
			after:   time.Hour, summary: "3 VMs of driver openstack belong to no Machine",
		},
		"MillwrightCertificateExpires": {
			// The samples begin in 1970.
			sick:    `millwright_certificate_expiry_timestamp_seconds{certificate="driver/openstack",pod="a"} 600000x90`,
			healthy: `millwright_certificate_expiry_timestamp_seconds{certificate="driver/openstack",pod="a"} 700000x90`,
			after:   time.Hour, summary: "certificate driver/openstack of the manager expires 6d 21h",
		},
	} {
		t.Run(name, func(t *testing.T) {
			alert, ok := alerts[name]
			if !ok {
				t.Fatalf("there is no alert %s", name)
			}
			delete(alerts, name)
			fired, at := evaluate(t, alert, tc.sick)
			if at != tc.after || !strings.Contains(fired, tc.summary) {
				t.Errorf("it fires after %s and says %q, want %s and %q", at, fired, tc.after, tc.summary)
			}
			if fired, at := evaluate(t, alert, tc.healthy); fired != "" {
				t.Errorf("of a fleet that is well it fires after %s and says %q", at, fired)
			}
		})
	}
	for name := range alerts {
		t.Errorf("nobody has tried whether %s fires", name)
	}
}

// evaluate looks each minute whether the alert fires, and returns what it says, and when. It is
// empty if it never does.
func evaluate(t *testing.T, r rule, samples string) (summary string, at time.Duration) {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(samples, "\n", "\n  "))
	t.Cleanup(func() { _ = storage.Close() })
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	hold := model.Duration(0)
	if r.For != "" {
		if hold, err = model.ParseDuration(r.For); err != nil {
			t.Fatal(err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000, Timeout: time.Minute})
	alerting := rules.NewAlertingRule(r.Alert, expression, time.Duration(hold), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	for at := time.Duration(0); at <= 90*time.Minute; at += time.Minute {
		if _, err := alerting.Eval(context.Background(), 0, time.Unix(0, 0).Add(at), rules.EngineQueryFunc(engine, storage), nil, 0); err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		for _, active := range alerting.ActiveAlerts() {
			if active.State == rules.StateFiring {
				return active.Annotations.Get("summary"), at
			}
		}
	}
	return "", 0
}

// An alert says where an operator reads on, and the section is there.
func TestOPS6_EachAlertNamesItsRunbook(t *testing.T) {
	section := regexp.MustCompile(`^See "([^"]+)" in (docs/[a-z]+\.md)\.$`)
	for name, r := range read(t) {
		found := section.FindStringSubmatch(r.Annotations["description"])
		if found == nil {
			t.Fatalf("%s: %q names no section", name, r.Annotations["description"])
		}
		text, err := os.ReadFile("../../" + found[2])
		if err != nil || !regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(found[1])+`$`).Match(text) {
			t.Errorf("%s: %s has no section %q: %v", name, found[2], found[1], err)
		}
		if r.Labels["severity"] == "" {
			t.Errorf("%s has no severity", name)
		}
	}
}
