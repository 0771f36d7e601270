package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// Each metric that is looked at is one of those that docs/monitoring.md lists.
func TestOPS6_DashboardsLookAtMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`millwright_\w+`)
	known := map[string]bool{}
	for _, found := range regexp.MustCompile("`(millwright_[^`]*)`").FindAllStringSubmatch(string(text), -1) {
		// Several names may stand in braces, and so may labels.
		if several := regexp.MustCompile(`^(\w+_)\{([\w,]+)\}(_\w+)$`).FindStringSubmatch(found[1]); several != nil {
			for name := range strings.SplitSeq(several[2], ",") {
				known[several[1]+name+several[3]] = true
			}
			continue
		}
		known[metric.FindString(found[1])] = true
	}
	manifest, err := configMap()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range metric.FindAllString(string(manifest), -1) {
		if name = regexp.MustCompile(`_(bucket|count)$`).ReplaceAllString(name, ""); !known[name] {
			t.Errorf("docs/monitoring.md does not list %s", name)
		}
	}
}

// Each dashboard is one by Grafana's own types, no two panels lie upon each other, and Prometheus
// reads each query.
func TestOPS6_DashboardsCanBeImported(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/dashboards/dashboards.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Data map[string]string }
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Data) != len(dashboards) {
		t.Errorf("there are %d dashboards, want %d: run `make generate`", len(file.Data), len(dashboards))
	}
	plugins.RegisterDefaultPlugins() // they know panels and queries
	reader := parser.NewParser(parser.Options{})
	for name, text := range file.Data {
		var read dashboard.Dashboard //nolint:staticcheck // see page.json
		for _, err := range []error{read.UnmarshalJSONStrict([]byte(text)), read.Validate()} {
			if err != nil && err.Error() != "" { // no errors are an error without words
				t.Errorf("%s: %v", name, err)
			}
		}
		var plain struct {
			UID    string `json:"uid"`
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
				GridPos struct{ X, Y, W, H int }
			}
		}
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			t.Fatal(err)
		}
		if plain.UID == "" || len(plain.Panels) < 5 {
			t.Errorf("%s: its uid is %q, and it has %d panels", name, plain.UID, len(plain.Panels))
		}
		taken := map[[2]int]string{}
		for _, p := range plain.Panels {
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= width {
						t.Fatalf("%s: %q lies upon %q, or beyond the edge", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			for _, target := range p.Targets {
				if _, err := reader.ParseExpr(target.Expr); err != nil || !strings.Contains(target.Expr, "millwright_") {
					t.Errorf("%s: %q asks %s: %v", name, p.Title, target.Expr, err)
				}
			}
			if len(p.Targets) == 0 {
				t.Errorf("%s: %q asks nothing", name, p.Title)
			}
		}
	}
}
