package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/millwright-dev/millwright/core/forecast"
)

// What is left out, unless all is wanted: names of machines beyond so many in a wave, and waves
// between the first and the last.
const (
	mostNames  = 3
	firstWaves = 10
)

// Print writes the plan for people; all of its waves and names if wide.
func (p *Plan) Print(out io.Writer, wide bool) error {
	var text bytes.Buffer
	is := ""
	if p.IsNew {
		is = ", which does not exist yet"
	}
	fmt.Fprintf(&text, "machinedeployment/%s in %s%s\n", p.Name, p.Namespace, is)
	if !p.IsNew {
		p.printChanges(&text)
	}
	fmt.Fprintf(&text, "\n%s\n", p.summary())
	if len(p.Waves) > 0 {
		text.WriteString("\n")
		p.printWaves(&text, wide)
	}
	if p.WaitsFor != "" {
		fmt.Fprintf(&text, "\n%s\n", p.WaitsFor)
	}
	_, err := out.Write(text.Bytes())
	return err
}

func (p *Plan) printChanges(text io.Writer) {
	for _, kind := range []struct {
		effect Effect
		title  string
	}{
		{Replaces, "Replaces machines"}, {InPlace, "Changes in place, replaces nothing"}, {Scales, "Scales"}, {Steers, "Changes how rollouts go"},
	} {
		title := "  " + kind.title + ":\n"
		for _, c := range p.Changes {
			if c.Effect == kind.effect {
				_, _ = fmt.Fprintf(text, "%s    %s\n", title, c.words())
				title = ""
			}
		}
	}
	if len(p.Changes) == 0 {
		_, _ = fmt.Fprintln(text, "  Nothing in its spec changes.")
	}
}

func (p *Plan) summary() string {
	if p.IsQuiet() {
		return "No machine is created or deleted."
	}
	var happens []string
	if p.Create > 0 {
		happens = append(happens, count(p.Create, "machine is", "machines are")+" created")
	}
	if p.Delete > 0 {
		happens = append(happens, count(p.Delete, "machine is", "machines are")+" deleted")
	}
	text := fmt.Sprintf("%s, in %s.", strings.Join(happens, ", "), count(len(p.Waves), "wave", "waves"))
	if p.IsNew {
		return text
	}
	return text + fmt.Sprintf(" At no time are fewer than %d of %d available.", p.LeastAvailable, p.Replicas)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (p *Plan) printWaves(text io.Writer, wide bool) {
	var lines bytes.Buffer
	table := tabwriter.NewWriter(&lines, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "WAVE\tMACHINES\tAVAILABLE\tCREATE\tDELETE")
	for i, w := range p.Waves {
		if !wide && len(p.Waves) > firstWaves+2 && i >= firstWaves && i < len(p.Waves)-1 {
			if i == firstWaves {
				_, _ = fmt.Fprintf(table, "…\t\t\t%d more like these; -o wide shows them\t\n", len(p.Waves)-1-firstWaves)
			}
			continue
		}
		_, _ = fmt.Fprintf(table, "%d\t%d\t%d\t%s\t%s\n", i+1, w.Machines, w.Available, w.creates(), w.deletes(wide))
	}
	_ = table.Flush() // into memory
	for line := range strings.Lines(lines.String()) {
		_, _ = fmt.Fprintln(text, strings.TrimRight(line, " \n"))
	}
}

func (w *Wave) creates() string {
	var words []string
	for _, set := range slices.Sorted(maps.Keys(w.Create)) {
		name := map[bool]string{true: "a new set", false: set}[set == forecast.NewSet]
		words = append(words, fmt.Sprintf("%d in %s", w.Create[set], name))
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

func (w *Wave) deletes(wide bool) string {
	var names []string
	for _, set := range slices.Sorted(maps.Keys(w.Delete)) {
		names = append(names, w.Delete[set]...)
	}
	if left := len(names) - mostNames; !wide && left > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), left)
	}
	return cmp.Or(strings.Join(names, ", "), "-")
}
