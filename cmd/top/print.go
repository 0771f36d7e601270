package top

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// barWidth is how many characters a progress bar has.
const barWidth = 20

// What a terminal is told to show text in a colour, and to show it as before.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[39m"
)

// Options say how a table looks.
type Options struct {
	// Lines is how many there may be; 0 for all that it takes.
	Lines int
	// Coloured shows bars in green where a deployment is complete, and in yellow where not.
	Coloured bool
	// Namespaces shows the namespace with each name.
	Namespaces bool
}

// Table writes a frame as a table.
func (f Frame) Table(out io.Writer, o Options) error {
	var text bytes.Buffer
	_, _ = fmt.Fprintf(&text, "%s   %s\n\n", f.Time.Format(time.TimeOnly), f.summary())
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "MACHINEDEPLOYMENT\tPROGRESS\tAVAILABLE\tUPDATED\tOUTDATED\tLEFT\tOTHER PHASES")
	for i, d := range f.Deployments {
		if rest := len(f.Deployments) - i; o.Lines > 0 && i >= o.Lines-4 && rest > 1 {
			_, _ = fmt.Fprintf(table, "… and %d more\t\t\t\t\t\t\n", rest)
			break
		}
		name := d.Name
		if o.Namespaces {
			name = d.Namespace + "/" + name
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d/%d\t%d/%d\t%d\t%s\t%s\n", name, d.bar(o.Coloured),
			d.Available, d.Replicas, d.Updated, d.Replicas, d.Outdated, d.left(), others(d.Phases))
	}
	_ = table.Flush() // into memory
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Lines writes what has changed since the frame before: a line for each deployment.
func (f Frame) Lines(out io.Writer, before Frame) error {
	for _, d := range f.Deployments {
		is, was := d.line(), ""
		if i := slices.IndexFunc(before.Deployments, func(o Deployment) bool { return o.Namespace == d.Namespace && o.Name == d.Name }); i >= 0 {
			was = before.Deployments[i].line()
		}
		if is == was {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s %s; %s left\n", f.Time.Format(time.TimeOnly), is, d.left()); err != nil {
			return err
		}
	}
	return nil
}

func (f Frame) summary() string {
	machines := "machines"
	if f.Machines == 1 {
		machines = "machine"
	}
	return fmt.Sprintf("%d %s (%s)   %.1f join and %.1f go a minute", f.Machines, machines, counted(f.Phases), f.Joins, f.Leaves)
}

func (d Deployment) line() string {
	text := fmt.Sprintf("%s/%s: %d of %d available, %d updated, %d outdated", d.Namespace, d.Name, d.Available, d.Replicas, d.Updated, d.Outdated)
	if more := others(d.Phases); more != "" {
		text += "; " + more
	}
	return text
}

// bar is full when all machines that should be there are available and have the template.
func (d Deployment) bar(isColoured bool) string {
	filled := barWidth
	if d.Replicas > 0 {
		filled = min(barWidth*min(d.Updated, d.Available)/d.Replicas, barWidth)
	}
	text := strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
	if !isColoured {
		return text
	}
	return map[bool]string{true: green, false: yellow}[d.IsComplete()] + text + plain
}

func (d Deployment) left() string {
	switch {
	case d.Left == nil:
		return "?"
	case *d.Left == 0:
		return "-"
	default:
		return duration.HumanDuration(time.Duration(*d.Left * float64(time.Second)))
	}
}

// others are the phases but Running.
func others(phases map[string]int) string {
	rest := maps.Clone(phases)
	delete(rest, "Running")
	return counted(rest)
}

func counted(phases map[string]int) string {
	var words []string
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		words = append(words, fmt.Sprintf("%d %s", phases[phase], phase))
	}
	return strings.Join(words, ", ")
}
