package story

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Tell writes who the Machine is, how it is now, and how that came to be.
func Tell(out io.Writer, m *clusterv1alpha1.Machine, events []eventsv1.Event, now time.Time) error {
	heading := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(name string, parts ...string) {
		text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
		_, _ = fmt.Fprintf(heading, "%s:\t%s\n", name, cmp.Or(text, "<none>"))
	}
	line("Machine", m.Namespace+"/"+m.Name)
	line("Owner", owner(m))
	line("Phase", string(m.Status.Phase))
	line("Driver", m.Spec.ProviderSpec.Value.CloudProvider)
	line("VM", m.Status.ProviderID)
	line("Kubelet", m.Spec.Versions.Kubelet)
	line("Addresses", addresses(m.Status.Addresses)...)
	if ref := m.Status.NodeRef; ref != nil {
		var says []string
		if info := m.Status.NodeInfo; info != nil {
			says = []string{info.KubeletVersion, info.OSImage, info.Architecture}
		}
		line("Node", append([]string{ref.Name}, says...)...)
	} else {
		line("Node")
	}
	if err := heading.Flush(); err != nil {
		return err
	}
	if ready := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
		_, _ = fmt.Fprintf(out, "\nReady is %s for %s: %s\n", ready.Status, duration.HumanDuration(now.Sub(ready.LastTransitionTime.Time)), ready.Reason)
		paragraph(out, ready.Message, "  ")
	}
	return tellSteps(out, m, Steps(m, events))
}

// tellSteps writes a line for each step, and what there is to say below it.
func tellSteps(out io.Writer, m *clusterv1alpha1.Machine, steps []Step) error {
	_, _ = fmt.Fprintf(out, "\n%-21s%-8s%-22s%-9s%s\n", "AT", "AFTER", "STEP", "STATUS", "REASON")
	ready := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady)
	for _, s := range steps {
		after := duration.HumanDuration(s.At.Sub(m.CreationTimestamp.Time))
		row := fmt.Sprintf("%-21s%-8s%-22s%-9s%s", s.At.UTC().Format(time.RFC3339), after, s.What, s.Status, s.Reason)
		if _, err := fmt.Fprintln(out, strings.TrimRight(row, " ")); err != nil {
			return err
		}
		if ready == nil || s.Message != ready.Message || s.Reason != ready.Reason {
			paragraph(out, s.Message, "                             ")
		}
	}
	return nil
}

// paragraph writes a text with something before each line of it.
func paragraph(out io.Writer, text, before string) {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		_, _ = fmt.Fprintln(out, strings.TrimRight(before+line, " "))
	}
}
