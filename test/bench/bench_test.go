package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/tier"
)

// A small run, whole: what comes out has every number, and they fit together.
func TestSmallRunYieldsEveryNumber(t *testing.T) {
	tier.Long(t, "it measures for two minutes")
	const machines = 20
	// Sockets lie in it: its path has to be short.
	dir, err := os.MkdirTemp("", "mw-bench-")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	report, err := Run(t.Context(), Options{
		Machines: machines, BinDir: "../../bin", DeployDir: "../../deploy", Dir: dir, Idle: 2 * time.Second, Out: &table,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatalf("%v\nlogs of all processes are in %s", err, dir)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Log("\n" + table.String())
	path := filepath.Join(dir, "bench.json")
	if err := report.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	checkReport(t, path, machines)
}

func checkReport(t *testing.T, path string, machines float64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	inRange := func(from map[string]any, field string, least, most float64) {
		t.Helper()
		if n, ok := from[field].(float64); !ok || n < least || n > most {
			t.Errorf("%s is %v, want a number from %v to %v", field, from[field], least, most)
		}
	}
	// A floor of zero seconds would be one that wrote nothing; writes are what the limits allow,
	// and some for the fleet as such.
	for name, want := range map[string]struct{ leastWrites, mostWrites, peak, available float64 }{
		"scale_up":   {7, 9, machines, 0},
		"rollout":    {12, 22, machines * 1.1, machines},
		"scale_down": {4, 6, machines, 0},
	} {
		phase, ok := all[name].(map[string]any)
		if !ok {
			t.Errorf("%s is %v, want an object", name, all[name])
			continue
		}
		inRange(phase, "machines", machines, machines)
		inRange(phase, "seconds", 0.1, 120)
		inRange(phase, "floor_seconds", 0.01, 120)
		inRange(phase, "api_writes_per_machine", want.leastWrites, want.mostWrites)
		inRange(phase, "events_per_machine", 1, 10)
		inRange(phase, "driver_calls_per_machine", 1, 10)
		inRange(phase, "peak_machines", machines, want.peak)
		inRange(phase, "peak_vms", machines, want.peak)
		inRange(phase, "lowest_available", want.available, want.available)
	}
	inRange(all, "manager_peak_rss_mib", 10, 1000)
	inRange(all, "manager_peak_anonymous_mib", 5, 1000)
	inRange(all, "manager_cpu_seconds", 0.1, 1000)
	inRange(all, "idle_writes_per_minute", 0, 0)
	inRange(all, "floor_errors", 0, 0)
	ways, _ := all["boundary"].([]any)
	if len(ways) != 4 {
		t.Fatalf("calls were measured in %d ways, want 4", len(ways))
	}
	for _, way := range ways {
		one, _ := way.(map[string]any)
		inRange(one, "calls_per_second", 100, math.MaxFloat64)
		inRange(one, "p50_microseconds", 0, 1e6)
		inRange(one, "p99_microseconds", 0, 1e6)
	}
}

func TestPeakVMs(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	vm := func(created, deleted int) *backendv1alpha1.VM {
		one := &backendv1alpha1.VM{CreateTime: timestamppb.New(at(created))}
		if deleted > 0 {
			one.DeleteTime = timestamppb.New(at(deleted))
		}
		return one
	}
	cases := map[string]struct {
		vms  []*backendv1alpha1.VM
		want int
	}{
		"one after the other, at the same instant": {[]*backendv1alpha1.VM{vm(11, 15), vm(15, 19)}, 1},
		"two that overlap":                         {[]*backendv1alpha1.VM{vm(11, 16), vm(15, 19)}, 2},
		"there before and after":                   {[]*backendv1alpha1.VM{vm(1, 0), vm(12, 0)}, 2},
		"gone before, made after":                  {[]*backendv1alpha1.VM{vm(1, 9), vm(21, 0)}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := peakVMs(tc.vms, at(10), at(20)); got != tc.want {
				t.Errorf("peakVMs() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheFloorsShareOfCoreIsItsBudget(t *testing.T) {
	of := func(user, verb, resource string, n int) []audit.Request {
		var requests []audit.Request
		for range n {
			requests = append(requests, audit.Request{User: user, Write: audit.Write{Verb: verb, Resource: resource}})
		}
		return requests
	}
	core := stack.ManagerUser
	requests := append(of(core, "update", "machines/status", 10), of(core, "create", "machines", 4)...)
	requests = append(requests, of(core, "create", "events", 5)...)
	requests = append(requests, of("somebody", "create", "nodes", 3)...)
	cases := map[string]struct {
		budget int
		want   map[string]int
	}{
		"within the budget":     {14, map[string]int{"machines/status": 10, "machines": 4, "events": 5, "nodes": 3}},
		"three too many":        {11, map[string]int{"machines/status": 7, "machines": 4, "events": 5, "nodes": 3}},
		"more than can be left": {1, map[string]int{"machines": 4, "events": 5, "nodes": 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]int{}
			for _, w := range capped(requests, tc.budget) {
				got[w.Resource]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("writes of the floor (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDriverCalls(t *testing.T) {
	calls := func(method string, n uint64) *dto.Metric {
		return &dto.Metric{
			Label:     []*dto.LabelPair{{Name: new("code"), Value: new("OK")}, {Name: new("method"), Value: new(method)}},
			Histogram: &dto.Histogram{SampleCount: new(n)},
		}
	}
	metrics := map[string]*dto.MetricFamily{
		"millwright_driver_call_duration_seconds": {Metric: []*dto.Metric{calls("CreateMachine", 20), calls("ListMachines", 12), calls("Probe", 7)}},
	}
	if got := driverCalls(metrics); got != 32 {
		t.Errorf("driverCalls() = %d, want 32: Probe is about no machine", got)
	}
}

func TestMetadataOfAnswers(t *testing.T) {
	node := fmt.Sprintf(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":%q,"resourceVersion":"7"}}`, "u")
	w := &write{body: []byte(node)}
	if err := w.encode(&audit.Request{Write: audit.Write{Verb: "create", Resource: "nodes"}}); err != nil {
		t.Fatal(err)
	}
	for form, answer := range map[string][]byte{"JSON": []byte(node), "protobuf": w.body} {
		if meta, err := metaOf(answer); err != nil || meta.ResourceVersion != "7" || meta.UID != "u" {
			t.Errorf("%s: metaOf() = %v, %v", form, meta, err)
		}
	}
}
