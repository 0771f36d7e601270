package blueprint

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/millwright-dev/millwright/core/driver/schema"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// Rules are the operator's. The zero value allows every address.
type Rules struct {
	// Endpoints are the hosts that specs may name as a cloud's address: names, or patterns such as *.example.com. Empty
	// allows all, but for a machine that inherits credentials: those go only where they were meant for.
	Endpoints []string
}

// ParseEndpoint checks a pattern of hosts. An error says what to write instead.
func ParseEndpoint(pattern string) (string, error) {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" || strings.ContainsAny(pattern, "/ ") {
		return "", fmt.Errorf("%q: write a host, or a pattern of hosts such as *.example.com", pattern)
	}
	return strings.ToLower(pattern), nil
}

// Read takes a spec apart. The error is what a Machine shows.
func Read(spec []byte) (providerspec.Spec, error) {
	read, err := providerspec.Read(spec)
	if problems, wrong := errors.AsType[providerspec.Problems](err); wrong {
		return read, Wrong(problems)
	}
	return read, err
}

// maxTold is how many problems a Machine shows.
const maxTold = 32

// Wrong is the failure of a spec with wrong fields, the first of them at least; nil for none.
func Wrong(problems providerspec.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	problems = problems[:min(len(problems), maxTold)]
	fields := make([]instance.Field, 0, len(problems))
	for _, problem := range problems {
		fields = append(fields, instance.Field{Path: problem.Path, Description: problem.Description})
	}
	return invalid(problems.Error(), fields...)
}

// Inspect returns what the rules have against a blueprint, whose Spec was read as spec, in the order of the paths. known is its
// driver's schema, nil where it has none, and then why says so.
func (r Rules) Inspect(b Blueprint, spec providerspec.Spec, known *schema.Schema, why string) providerspec.Problems {
	found := r.inspect(b, spec, known, why)
	found.Sort()
	return found
}

func (r Rules) inspect(b Blueprint, spec providerspec.Spec, known *schema.Schema, why string) providerspec.Problems {
	var found providerspec.Problems
	add := func(at providerspec.Path, format string, args ...any) {
		found = append(found, providerspec.Problem{Path: at.Shown(), Description: fmt.Sprintf(format, args...)})
	}
	for _, ref := range spec.References {
		switch {
		case ref.Kind != providerspec.Secret:
		case known == nil:
			add(ref.Path, "must not come from a Secret: %s, so that it cannot be told which fields are secret; "+
				"give the Secret to a MachineClass or a Cluster instead", why)
		case !known.WriteOnly(ref.Path):
			add(ref.Path, "must not come from a Secret: the driver does not mark this field as secret (writeOnly); "+
				"write the value, or refer to a ConfigMap")
		case len(r.Endpoints) > 0 && known.IsEndpoint(ref.Path):
			add(ref.Path, "must not come from a Secret: addresses are held to --allow-endpoint")
		}
	}
	if known == nil {
		return found
	}
	for _, endpoint := range known.Endpoints(spec.JSON()) {
		if len(r.Endpoints) > 0 && !r.allows(endpoint.Value) {
			add(endpoint.Path, "is an address that the operator does not allow (--allow-endpoint)")
		}
	}
	if len(r.Endpoints) == 0 && len(b.Credentials) > 0 {
		for _, at := range ownEndpoints(b.Own, known) {
			add(at, "must not be set beside inherited credentials, unless the operator allows addresses (--allow-endpoint): leave it to the MachineClass or the Cluster")
		}
	}
	return found
}

// ownEndpoints are the addresses that the machine brings itself.
func ownEndpoints(own []byte, known *schema.Schema) []providerspec.Path {
	read, err := providerspec.Read(own)
	if err != nil {
		return nil
	}
	var found []providerspec.Path
	for _, endpoint := range known.Endpoints(read.JSON()) {
		found = append(found, endpoint.Path)
	}
	for _, ref := range read.References {
		if known.IsEndpoint(ref.Path) {
			found = append(found, ref.Path)
		}
	}
	return found
}

// allows says whether an address is one of those that the operator allows.
func (r Rules) allows(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" {
		return false
	}
	host := strings.ToLower(parsed.Hostname())
	for _, pattern := range r.Endpoints {
		if matches, err := path.Match(pattern, host); err == nil && matches {
			return true
		}
	}
	return false
}
