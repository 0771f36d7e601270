package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Reference says which image, network, subnet or security group is meant: by name or id, or by a
// Filter, which is written in JSON then. Empty means none. References compare with ==.
type Reference string

// Filter is what a thing has to have. Just one thing may have all of it.
type Filter struct {
	// Name is a name or an id; empty for any.
	Name string `json:"name,omitempty"`
	// Description is the whole description; empty for any. Images have none.
	Description string `json:"description,omitempty"`
	// Tags are all among the thing's tags.
	Tags []string `json:"tags,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. It never fails: check tells what is wrong.
func (r *Reference) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case string(raw) == "null":
		*r = ""
	case json.Unmarshal(raw, &text) == nil:
		*r = Reference(text)
	case strings.HasPrefix(string(raw), "{"):
		*r = Reference(raw)
		if f, err := r.filter(); err == nil {
			canonical, _ := json.Marshal(f) // strings cannot fail
			*r = Reference(canonical)
		}
	default:
		*r = Reference("{" + string(raw)) // which is no JSON
	}
	return nil
}

// Filter is what the thing has to have; of a reference by name or id that is Name alone.
func (r Reference) Filter() Filter {
	f, err := r.filter()
	if err != nil {
		return Filter{Name: string(r)}
	}
	return f
}

func (r Reference) filter() (Filter, error) {
	if !strings.HasPrefix(string(r), "{") {
		return Filter{Name: string(r)}, nil
	}
	var f Filter
	decoder := json.NewDecoder(strings.NewReader(string(r)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&f)
	slices.Sort(f.Tags)
	return f, err
}

// String is how a message speaks of the reference, after its kind: `"noble"`, or `with the tags a,
// b`.
func (f Filter) String() string {
	var parts []string
	if f.Name != "" {
		parts = append(parts, fmt.Sprintf("%q", f.Name))
	}
	if f.Description != "" {
		parts = append(parts, fmt.Sprintf("with the description %q", f.Description))
	}
	if len(f.Tags) > 0 {
		parts = append(parts, "with the tags "+strings.Join(f.Tags, ", "))
	}
	return strings.Join(parts, " ")
}

// check notes what is wrong with a reference.
func (r Reference) check(field string, found *findings) {
	f, err := r.filter()
	switch {
	case r == "":
	case err != nil:
		found.add(field, "must be a name or an id, or an object with name, description or tags")
	case f.String() == "":
		found.add(field, "must have a name, a description or tags, or be left out")
	}
	for i, tag := range f.Tags {
		if tag == "" || strings.Contains(tag, ",") {
			found.add(element(field+".tags", i), "must not be empty, and have no ','")
		}
	}
}

// checkReferences notes what is wrong with each reference of a list.
func checkReferences(field string, list []Reference, found *findings) {
	for i, one := range list {
		one.check(element(field, i), found)
	}
}
