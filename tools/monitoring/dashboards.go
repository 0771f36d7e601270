package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// page is a dashboard.
type page struct {
	title, about string
	// numbers stand at the top, graphs below.
	numbers, graphs []panel
}

// panel shows queries, by their legends.
type panel struct {
	title, unit string
	queries     map[string]string
}

// one is a panel of one query.
func one(title, unit, query, legend string) panel {
	return panel{title, unit, map[string]string{legend: query}}
}

// quantiles are the median and the slowest twentieth of a histogram, by labels.
func quantiles(title, metric string, by ...string) panel {
	queries, names := map[string]string{}, ""
	if len(by) > 0 {
		names = " {{" + strings.Join(by, "}} {{") + "}}"
	}
	for legend, q := range map[string]string{"half of them": "0.5", "95 %": "0.95"} {
		queries[legend+names] = fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket[15m])))", q, strings.Join(append([]string{"le"}, by...), ", "), metric)
	}
	return panel{title, "s", queries}
}

// perMinute is the rate of a counter, by labels.
func perMinute(metric string, by ...string) string {
	if len(by) == 0 {
		return fmt.Sprintf("60 * sum(rate(%s[5m]))", metric)
	}
	return fmt.Sprintf("60 * sum by (%s) (rate(%s[5m]))", strings.Join(by, ", "), metric)
}

// dashboards are those that are shipped. Several replicas serve most metrics; only the leader's say
// something.
var dashboards = []page{
	{
		title: "Fleet", about: "How Machines fare: how many there are, what keeps them from getting on, and how long they take.",
		numbers: []panel{
			one("Machines", "short", "max(millwright_fleet_machines)", ""),
			one("Unhealthy", "short", "max(millwright_fleet_unhealthy_machines)", ""),
			one("Nothing is replaced", "short", "max(millwright_fleet_meltdown)", ""),
			one("Version", "short", "max by (version) (millwright_build_info)", "{{version}}"),
		},
		graphs: []panel{
			{"Machines", "short", map[string]string{"should be healthy": "max(millwright_fleet_machines)", "unhealthy": "max(millwright_fleet_unhealthy_machines)"}},
			{"Machines a minute", "short", map[string]string{
				"created": perMinute("millwright_machineset_machines_created_total"), "deleted": perMinute("millwright_machineset_machines_deleted_total"),
				"refused": perMinute("millwright_machineset_machines_refused_total"),
			}},
			quantiles("From creation to Running", "millwright_machine_startup_duration_seconds"),
			quantiles("From the VM's start to Running", "millwright_machine_join_duration_seconds"),
			quantiles("Drains", "millwright_machine_drain_duration_seconds"),
			quantiles("Deletions", "millwright_machine_deletion_duration_seconds"),
			one("What keeps Machines from getting on, a minute", "short", perMinute("millwright_machine_warnings_total", "reason"), "{{reason}}"),
			one("Found unhealthy by health checks, a minute", "short", perMinute("millwright_machinehealthcheck_unhealthy_machines_total"), "Machines"),
		},
	},
	{
		title: "Rollouts", about: "How MachineDeployments and their MachineSets get on.",
		numbers: []panel{
			one("Deadlines exceeded in the last hour", "short", "sum(increase(millwright_machinedeployment_progress_deadlines_exceeded_total[1h]))", ""),
			one("Sets that stopped creating in the last hour", "short", "sum(increase(millwright_machineset_freezes_total[1h]))", ""),
		},
		graphs: []panel{
			{"Sets a minute", "short", map[string]string{
				"created": perMinute("millwright_machinedeployment_sets_created_total"), "scaled": perMinute("millwright_machinedeployment_sets_scaled_total"),
			}},
			{"Machines a minute", "short", map[string]string{
				"created": perMinute("millwright_machineset_machines_created_total"), "updated in place": perMinute("millwright_machineset_machines_updated_total"),
				"deleted": perMinute("millwright_machineset_machines_deleted_total"),
			}},
			quantiles("From creation to Running", "millwright_machine_startup_duration_seconds"),
			quantiles("Drains", "millwright_machine_drain_duration_seconds"),
			one("Timeouts that stood still, seconds a minute", "s", perMinute("millwright_machine_timeouts_paused_seconds_total", "driver"), "{{driver}}"),
		},
	},
	{
		title: "Drivers", about: "What the manager asks of drivers, what they answer, and what it holds back.",
		numbers: []panel{
			one("Connected and ready", "short", "max by (driver) (millwright_driver_up)", "{{driver}}"),
			one("Accounts held back", "short", "sum(max by (driver, class) (millwright_driver_breakers))", ""),
			one("VMs without a Machine", "short", `sum(max by (driver) (millwright_orphans{state="found"}))`, ""),
		},
		graphs: []panel{
			one("Calls a minute", "short", perMinute("millwright_driver_call_duration_seconds_count", "driver", "method"), "{{driver}} {{method}}"),
			one("Calls that failed, a minute", "short", perMinute(`millwright_driver_call_duration_seconds_count{code!="OK"}`, "driver", "method", "code"), "{{driver}} {{method}} {{code}}"),
			quantiles("How long calls take", "millwright_driver_call_duration_seconds", "driver", "method"),
			one("Calls under way", "short", "sum by (driver) (millwright_driver_calls_in_flight)", "{{driver}}"),
			one("Creates and deletes a minute, by what they came to", "short", perMinute("millwright_driver_mutations_total", "driver", "operation", "class"), "{{driver}} {{operation}} {{class}}"),
			one("Accounts and operations held back", "short", "max by (driver, class) (millwright_driver_breakers)", "{{driver}} {{class}}"),
			one("Connections a minute", "short", perMinute("millwright_driver_connections_total", "driver", "result"), "{{driver}} {{result}}"),
			one("VMs without a Machine", "short", "max by (driver, state) (millwright_orphans)", "{{driver}} {{state}}"),
			one("Scans for them an hour", "short", "60 * "+perMinute("millwright_orphan_scans_total", "driver", "result"), "{{driver}} {{result}}"),
			one("Kubelets' certificates a minute", "short", perMinute("millwright_certificate_requests_decided_total", "signer", "verdict"), "{{signer}} {{verdict}}"),
		},
	},
}

// A dashboard is so many columns wide. Numbers share a row, two graphs the others.
const (
	width                     = 24
	numberHeight, graphHeight = 4, 8
)

// json returns the dashboard as Grafana imports it. It asks for the data source.
func (p page) json() ([]byte, error) {
	source := dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")
	//nolint:staticcheck // its successor is for Grafana 12 and later alone
	b := dashboard.NewDashboardBuilder("Millwright: "+p.title).Uid("millwright-"+strings.ToLower(p.title)).Description(p.about).
		Tags([]string{"millwright"}).Refresh("30s").Time("now-3h", "now").Timezone("browser").WithVariable(source)
	from := common.DataSourceRef{Type: new("prometheus"), Uid: new("$datasource")}
	for _, n := range p.numbers {
		shown := stat.NewPanelBuilder().Title(n.title).Unit(n.unit).Datasource(from).Span(uint32(width / len(p.numbers))).Height(numberHeight).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
		if n.isNamed() {
			shown = shown.TextMode(common.BigValueTextModeName)
		}
		for _, q := range n.sorted() {
			shown = shown.WithTarget(q)
		}
		b = b.WithPanel(shown)
	}
	for _, g := range p.graphs {
		shown := timeseries.NewPanelBuilder().Title(g.title).Unit(g.unit).Datasource(from).Span(width / 2).Height(graphHeight).Min(0)
		for _, q := range g.sorted() {
			shown = shown.WithTarget(q)
		}
		b = b.WithPanel(shown)
	}
	built, err := b.Build()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(built); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// sorted are the queries in the order of their legends.
func (p panel) sorted() []*prometheus.DataqueryBuilder {
	var all []*prometheus.DataqueryBuilder
	for i, legend := range slices.Sorted(maps.Keys(p.queries)) {
		query := prometheus.NewDataqueryBuilder().Expr(p.queries[legend]).RefId(string(rune('A' + i)))
		if legend != "" {
			query = query.LegendFormat(legend)
		}
		all = append(all, query)
	}
	return all
}

// isNamed says whether the panel shows names in the place of values.
func (p panel) isNamed() bool {
	_, is := p.queries["{{version}}"]
	return is
}
