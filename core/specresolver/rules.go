package specresolver

import (
	"fmt"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// Rules are the operator's. The zero value allows every address.
type Rules struct {
	// Endpoints are the addresses that specs may name as a cloud's. Empty allows all, but for a
	// machine that inherits credentials: those go only where they were meant for.
	Endpoints []EndpointPattern
}

// maxShown is how many problems a Machine shows.
const maxShown = 32

// refusal is the failure of a spec with wrong fields, as a Machine shows it; nil for none.
func refusal(problems providerspec.Problems) *instance.Failure {
	if len(problems) == 0 {
		return nil
	}
	problems = problems[:min(len(problems), maxShown)]
	return invalid(problems.Error(), problems...)
}

// inspect returns what the rules have against a spec, which was read as spec, in the order of the
// paths.
func (r Rules) inspect(e Effective, spec providerspec.Spec, known *providerspec.Schema) providerspec.Problems {
	i := inspection{rules: r, effective: e, spec: spec, known: known}
	i.checkReferences()
	if known.Absent() != "" {
		i.checkWithoutSchema()
	} else {
		i.checkEndpoints()
		i.checkOwnEndpoints()
	}
	i.found.Sort()
	return i.found
}

// inspection collects what the rules have against one spec.
type inspection struct {
	rules     Rules
	effective Effective
	spec      providerspec.Spec
	// known is the driver's schema.
	known *providerspec.Schema
	found providerspec.Problems
}

func (i *inspection) refuse(at providerspec.Path, format string, args ...any) {
	i.found = append(i.found, instance.Field{Path: at.Shown(), Description: fmt.Sprintf(format, args...)})
}

// checkReferences holds Secrets to the fields that the driver expects them in.
func (i *inspection) checkReferences() {
	for _, ref := range i.spec.References {
		switch {
		case ref.Kind != providerspec.Secret:
		case i.known.Absent() != "":
			i.refuse(ref.Path, "must not come from a Secret: %s, so that it cannot be told which fields are secret; "+
				"give the Secret to a MachineClass or a Cluster instead", i.known.Absent())
		case !i.known.WriteOnly(ref.Path):
			i.refuse(ref.Path, "must not come from a Secret: the driver does not mark this field as secret (writeOnly); "+
				"write the value, or refer to a ConfigMap")
		case len(i.rules.Endpoints) > 0 && i.known.IsEndpoint(ref.Path):
			i.refuse(ref.Path, "must not come from a Secret: addresses are held to --allow-endpoint")
		}
	}
}

// checkWithoutSchema holds inherited credentials back from a driver without a schema where any
// field could be an address: all fields of a list of allowed addresses, else those that the machine
// brings itself.
func (i *inspection) checkWithoutSchema() {
	if len(i.effective.Credentials) == 0 {
		return
	}
	if len(i.rules.Endpoints) > 0 {
		i.refuse(nil, "must not be given credentials: %s, so that its addresses cannot be held to --allow-endpoint; "+
			"use a driver that publishes a schema", i.known.Absent())
		return
	}
	own, wrong := providerspec.Read(i.effective.Own)
	if wrong != nil || len(own.References) > 0 || !providerspec.Equal(own.JSON(), nil) {
		i.refuse(nil, "must be empty beside inherited credentials: %s, so that it cannot be told which fields are addresses; "+
			"leave them all to the MachineClass or the Cluster", i.known.Absent())
	}
}

// checkEndpoints holds addresses to the list. Without one, only those that secrets go to have to be
// addresses that everybody reads alike.
func (i *inspection) checkEndpoints() {
	listed := len(i.rules.Endpoints) > 0
	if !listed && len(i.effective.Credentials) == 0 && len(i.spec.References) == 0 {
		return
	}
	for _, endpoint := range i.known.Endpoints(i.spec) {
		address, flaw := parseEndpoint(endpoint.Value)
		if flaw == "" && listed {
			flaw = i.rules.flaw(address)
		}
		if flaw != "" {
			i.refuse(endpoint.Path, "%s", flaw)
		}
	}
}

// checkOwnEndpoints keeps inherited credentials from going to an address of the machine's own.
func (i *inspection) checkOwnEndpoints() {
	if len(i.rules.Endpoints) > 0 || len(i.effective.Credentials) == 0 {
		return
	}
	own, wrong := providerspec.Read(i.effective.Own)
	if wrong != nil {
		return
	}
	const flaw = "must not be set beside inherited credentials, unless the operator allows addresses (--allow-endpoint): " +
		"leave it to the MachineClass or the Cluster"
	for _, endpoint := range i.known.Endpoints(own) {
		i.refuse(endpoint.Path, flaw)
	}
	for _, ref := range own.References {
		if i.known.IsEndpoint(ref.Path) {
			i.refuse(ref.Path, flaw)
		}
	}
}

// flaw says why the list does not allow an address; empty where it does.
func (r Rules) flaw(e endpoint) string {
	inTheClear := false
	for _, pattern := range r.Endpoints {
		if !pattern.matches(e) {
			continue
		}
		if pattern.scheme == e.scheme {
			return ""
		}
		inTheClear = inTheClear || e.scheme == "http"
	}
	if inTheClear {
		return "is plain http, over which secrets would go in the clear: use https, or have the operator allow http://HOST (--allow-endpoint)"
	}
	return "is an address that the operator does not allow (--allow-endpoint)"
}
