package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// An alert on a metric that nobody serves would never fire.
func TestOPS6_AlertsLookAtMetricsThatAreServed(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join(deployDir, "alerts", "prometheus_rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\bmillwright_\w+`).FindAllString(string(rules), -1)
	if len(names) == 0 {
		t.Fatal("the alerts look at no metric")
	}
	u := newSharingUser(t)
	// Some appear when something happens first: a create, or a scan for orphans.
	u.apply(deployment("seen", 1, nil))
	u.awaitRunning(1)
	eventually(t, "all metrics that alerts look at", func(ctx context.Context) error {
		metrics, err := u.Metrics(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if metrics[name] == nil {
				return fmt.Errorf("there is no %s", name)
			}
		}
		return nil
	})
}
