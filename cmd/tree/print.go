package tree

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// widestWhy is after how many characters a sentence is cut off, unless all of it is wanted.
const widestWhy = 60

// Options say how much is printed.
type Options struct {
	// Namespaces adds a column with the namespace.
	Namespaces bool
	// Wide prints sentences whole.
	Wide bool
	// Now is when ages end.
	Now time.Time
}

// Print writes a table: an object a line, below the one that owns it.
func Print(out io.Writer, items []*Item, o Options) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	columns := "NAME\tREADY\tPHASE\tAGE\tWHY"
	if o.Namespaces {
		columns = "NAMESPACE\t" + columns
	}
	_, _ = fmt.Fprintln(table, columns)
	for _, item := range items {
		o.lines(table, item, "", "")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// PrintNames writes each object's name a line, as `kubectl get -o name` does, owners first.
func PrintNames(out io.Writer, items []*Item) error {
	for _, item := range items {
		group := "." + clusterv1alpha1.GroupVersion.Group
		if item.Kind == "Node" {
			group = ""
		}
		if _, err := fmt.Fprintf(out, "%s%s/%s\n", strings.ToLower(item.Kind), group, item.Name); err != nil {
			return err
		}
		if err := PrintNames(out, item.Owned); err != nil {
			return err
		}
	}
	return nil
}

// lines writes an item and what it owns. first stands before its own line, rest before those of
// what it owns.
func (o Options) lines(table io.Writer, item *Item, first, rest string) {
	if o.Namespaces {
		_, _ = fmt.Fprintf(table, "%s\t", cmp.Or(item.Namespace, " "))
	}
	age := ""
	if !item.Created.IsZero() {
		age = duration.HumanDuration(o.Now.Sub(item.Created.Time))
	}
	_, _ = fmt.Fprintln(table, strings.Join([]string{
		first + item.Kind + "/" + item.Name, item.Ready, item.Phase, age, o.sentence(item.Why),
	}, "\t"))
	for i, owned := range item.Owned {
		if i < len(item.Owned)-1 {
			o.lines(table, owned, rest+"├─", rest+"│ ")
		} else {
			o.lines(table, owned, rest+"└─", rest+"  ")
		}
	}
}

// sentence is a text on one line.
func (o Options) sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); !o.Wide && len(runes) > widestWhy {
		return strings.TrimRight(string(runes[:widestWhy-1]), " ") + "…"
	}
	return text
}
