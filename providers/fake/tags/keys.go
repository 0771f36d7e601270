// Package tags names the tags by which the fake driver finds its resources again. They stand apart
// from the driver because the cloud's test hooks have to tell whose a resource is. Nothing else in
// the cloud may know.
package tags

// The tags on every resource that the driver makes, from its birth.
const (
	Cluster   = "millwright-cluster"
	Machine   = "millwright-machine"
	Namespace = "millwright-namespace"
	Name      = "millwright-name"
)
