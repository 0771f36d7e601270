package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
)

// Report is what was measured. Its JSON is the benchmark's output.
type Report struct {
	Machines  int    `json:"machines"`
	ScaleUp   *Phase `json:"scale_up"`
	Rollout   *Phase `json:"rollout"`
	ScaleDown *Phase `json:"scale_down"`
	// ManagerPeakRSSMiB and ManagerCPUSeconds are of the whole run. ManagerPeakAnonymousMiB leaves
	// out pages of the executable, which other processes share and the kernel takes back.
	ManagerPeakRSSMiB       float64 `json:"manager_peak_rss_mib"`
	ManagerPeakAnonymousMiB float64 `json:"manager_peak_anonymous_mib"`
	ManagerCPUSeconds       float64 `json:"manager_cpu_seconds"`
	// IdleWritesPerMinute are core's, as its budget counts them; IdleCPUPercent is the manager's,
	// of one core.
	IdleWritesPerMinute float64 `json:"idle_writes_per_minute"`
	IdleCPUPercent      float64 `json:"idle_cpu_percent"`
	IdleSeconds         float64 `json:"idle_seconds"`
	// Boundary is what a status call costs by transport.
	Boundary []Boundary `json:"boundary"`
	// EventsPerMachineLife are core's Events of scaling up and down, per machine.
	EventsPerMachineLife float64 `json:"events_per_machine_life"`
	// FloorErrors are writes that the API server refused when they were made once more.
	FloorErrors int `json:"floor_errors"`
	// Wrong is what was wrong with the run itself; empty in one that counts.
	Wrong []string `json:"wrong"`
}

// Phase is what was measured of one phase.
type Phase struct {
	Machines     int     `json:"machines"`
	Seconds      float64 `json:"seconds"`
	FloorSeconds float64 `json:"floor_seconds"`
	// Ratio is Seconds by FloorSeconds. CPURatio is the same of CPU seconds, of all processes: it
	// does not depend on what else the machine does.
	Ratio    float64 `json:"ratio"`
	CPURatio float64 `json:"cpu_ratio"`
	// MillisecondsPerMachine is to be compared between fleets of different sizes.
	MillisecondsPerMachine float64 `json:"milliseconds_per_machine"`
	// APIWritesPerMachine are core's without its Lease and its Events, which stand apart, until the
	// fleet has settled.
	APIWritesPerMachine float64 `json:"api_writes_per_machine"`
	WritesLimit         float64 `json:"writes_limit"`
	EventsPerMachine    float64 `json:"events_per_machine"`
	// DriverCallsPerMachine are core's calls to the driver, CloudCallsPerMachine the driver's to
	// the cloud.
	DriverCallsPerMachine float64 `json:"driver_calls_per_machine"`
	CloudCallsPerMachine  float64 `json:"cloud_calls_per_machine"`
	// PeakMachines is the most Machines at an instant, those being deleted included, as a watch saw
	// them; PeakVMs the most VMs that were alive in the cloud. PeakLimit holds for both.
	PeakMachines int `json:"peak_machines"`
	PeakVMs      int `json:"peak_vms"`
	PeakLimit    int `json:"peak_limit"`
	// LowestAvailable is the fewest Machines that were Ready and not being deleted.
	LowestAvailable int `json:"lowest_available"`
	// CoreWrites, AllWrites and FloorWrites count requests: of core, of everybody while the time
	// was taken, and of the floor.
	CoreWrites  map[string]int `json:"core_writes"`
	AllWrites   int            `json:"all_writes"`
	FloorWrites int            `json:"floor_writes"`
	// CPUSeconds and FloorCPUSeconds are by process.
	CPUSeconds      map[string]float64 `json:"cpu_seconds"`
	FloorCPUSeconds map[string]float64 `json:"floor_cpu_seconds"`
}

// Limits of the design; they are shown, and a run that exceeds them is still a run.
const (
	ratioLimit  = 2
	rssLimitMiB = 100
	eventsLimit = 3
)

// WriteFile writes the report as JSON.
func (r *Report) WriteFile(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Table writes what was measured beside floor and limits.
func (r *Report) Table(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{
		"", "machines", "seconds", "floor", "ratio", "limit", "CPU ratio", "ms/machine", "writes/m", "limit", "events/m", "driver calls/m",
		"peak", "peak VMs", "limit", "least available", "",
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, p := range []struct {
		name string
		*Phase
	}{{"scale_up", r.ScaleUp}, {"rollout", r.Rollout}, {"scale_down", r.ScaleDown}} {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t%.1f\t%.2f\t%.0f\t%.2f\t%.2f\t%d\t%d\t%d\t%d\t\n",
			p.name, p.Machines, p.Seconds, p.FloorSeconds, p.Ratio, ratioLimit, p.CPURatio, p.MillisecondsPerMachine,
			p.APIWritesPerMachine, p.WritesLimit, p.EventsPerMachine, p.DriverCallsPerMachine,
			p.PeakMachines, p.PeakVMs, p.PeakLimit, p.LowestAvailable)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	fmt.Fprintf(out, "\nmanager: %.1f MiB at most (limit %d), %.1f of them anonymous, %.2f s of CPU; idle: %.1f writes a minute (limit 0), %.2f %% of a core; "+
		"%.2f Events in a machine's life (limit %d)\n",
		r.ManagerPeakRSSMiB, rssLimitMiB, r.ManagerPeakAnonymousMiB, r.ManagerCPUSeconds, r.IdleWritesPerMinute, r.IdleCPUPercent, r.EventsPerMachineLife, eventsLimit)
	if err := r.boundaryTable(out); err != nil {
		return err
	}
	if r.FloorErrors > 0 {
		fmt.Fprintf(out, "%d writes of the floor were refused\n", r.FloorErrors)
	}
	for _, wrong := range r.Wrong {
		fmt.Fprintln(out, "WRONG:", wrong)
	}
	return nil
}

// boundaryTable writes what a call to a driver costs.
func (r *Report) boundaryTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\na status call\tcalls/s, 16 callers\tp50 µs\tp99 µs\t")
	for _, b := range r.Boundary {
		fmt.Fprintf(t, "%s\t%.0f\t%.1f\t%.1f\t\n", b.Transport, b.CallsPerSecond, b.P50Microseconds, b.P99Microseconds)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// round keeps as many digits as mean something.
func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}
