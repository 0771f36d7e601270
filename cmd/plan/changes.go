package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Effect is what the change of a field does to machines.
type Effect string

const (
	// Replaces: every machine is replaced by one that is made from the new value.
	Replaces Effect = "Replaces"
	// InPlace: the machines and Nodes there are get the new value.
	InPlace Effect = "InPlace"
	// Scales: there are to be more machines, or fewer.
	Scales Effect = "Scales"
	// Steers: it changes how rollouts go, and no machine.
	Steers Effect = "Steers"
)

// Change is that of one field.
type Change struct {
	// Path is the field's, from spec on.
	Path string `json:"path"`
	// From and To are its values as JSON, shortened; empty where there is none. A value that may be
	// a secret is not shown.
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Effect Effect `json:"effect"`
}

// effects are those of fields below these paths; the first that fits counts. core/machinetemplate
// decides which part of a template a VM is made from, and a test holds the two together.
var effects = []struct {
	path   string
	effect Effect
}{
	{"spec.replicas", Scales},
	{"spec.rolloutAfter", Replaces},
	{"spec.template.spec.providerSpec", Replaces},
	{"spec.template.spec.versions", Replaces},
	{"spec.template.spec.clusterRef", Replaces},
	{"spec.template.spec.bootstrap", Replaces},
	{"spec.template", InPlace},
	{"spec.minReadySeconds", InPlace},
	{"spec", Steers},
}

func effectOf(path string) Effect {
	i := slices.IndexFunc(effects, func(e struct {
		path   string
		effect Effect
	},
	) bool {
		return path == e.path || strings.HasPrefix(path, e.path+".")
	})
	return effects[i].effect
}

// changesOf returns the fields of the specs that differ, in the order of their paths. Of a new
// deployment that is every field.
func changesOf(before, after *clusterv1alpha1.MachineDeployment) ([]Change, error) {
	var from any
	var err error
	if before != nil {
		if from, err = decoded(before.Spec); err != nil {
			return nil, err
		}
	}
	to, err := decoded(after.Spec)
	if err != nil {
		return nil, err
	}
	var changes []Change
	compare("spec", from, to, &changes)
	return changes, nil
}

// decoded returns a value as JSON has it; numbers stay as they were written.
func decoded(value any) (any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	return tree, decoder.Decode(&tree)
}

// compare adds the differences of two values at that path. Lists are compared as a whole.
func compare(path string, from, to any, changes *[]Change) {
	before, wasMap := from.(map[string]any)
	after, isMap := to.(map[string]any)
	if (wasMap || from == nil) && (isMap || to == nil) && (wasMap || isMap) {
		keys := slices.Collect(maps.Keys(before))
		for key := range after {
			if _, ok := before[key]; !ok {
				keys = append(keys, key)
			}
		}
		for _, key := range slices.Sorted(slices.Values(keys)) {
			compare(path+"."+key, before[key], after[key], changes)
		}
		return
	}
	was, is := encoded(from), encoded(to)
	if was != is {
		*changes = append(*changes, Change{Path: path, From: shown(path, was), To: shown(path, is), Effect: effectOf(path)})
	}
}

func encoded(value any) string {
	if value == nil {
		return ""
	}
	if text, ok := value.(string); ok && text != "" {
		return text
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it was decoded from JSON
	return strings.TrimSpace(text.String())
}

// secretive matches the last part of paths whose values are not shown: a plan is printed in logs.
var secretive = regexp.MustCompile(`(?i)(password|passwd|secret|token|credential|private|accesskey|userdata)[^.]*$`)

// widest is after how many characters a value is cut off.
const widest = 60

func shown(path, value string) string {
	if value != "" && secretive.MatchString(path) && !strings.HasSuffix(path, "Ref.name") {
		return "(not shown)"
	}
	if runes := []rune(value); len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return value
}

// words are what a person reads of a change.
func (c Change) words() string {
	return fmt.Sprintf("%s: %s → %s", c.Path, cmp.Or(c.From, "(none)"), cmp.Or(c.To, "(none)"))
}
