package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// format is what -o asks for: a text for people, or the same as json or yaml.
type format struct {
	value   string
	allowed []string
}

// newFormat returns one that also takes these texts for people.
func newFormat(texts ...string) *format { return &format{allowed: append(texts, "json", "yaml")} }

func (f *format) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.value, "output", "o", "", "Output format: "+strings.Join(f.allowed, ", ")+".")
}

func (f *format) is(value string) bool { return f.value == value }

// print writes value as json or yaml, or has people's text written.
func (f *format) print(out io.Writer, value any, text func(io.Writer) error) error {
	switch {
	case f.value != "" && !slices.Contains(f.allowed, f.value):
		return fmt.Errorf("--output: %q is none of %s", f.value, strings.Join(f.allowed, ", "))
	case f.is("json"):
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case f.is("yaml"):
		raw, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(raw)
		return err
	}
	return text(out)
}

// nameOf takes a name, or KIND/NAME as kubectl prints it, of one of these kinds.
func nameOf(text string, kinds ...string) (string, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok {
		return text, nil
	}
	if kind, _, _ = strings.Cut(strings.ToLower(kind), "."); !slices.Contains(kinds, kind) {
		return "", fmt.Errorf("%s: expected a %s", text, kinds[1])
	}
	return name, nil
}
