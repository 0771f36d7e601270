// Package ui serves one page that shows MachineDeployments with all that they own, live, and may
// change them: `kubectl millwright ui`. It acts with the rights of the person who started it.
//
// Other users of the machine can reach its address, and so can any page in the person's browser. So
// every answer needs a cookie, which only the URL that the command prints gives, once
// (session.go). A request has to name the address itself as its host, and whatever changes
// something has to come from the page (guard.go). Nothing that a cloud or an object says is taken
// for HTML. The server is no proxy: it has a few paths of its own, and reads no Secret.
package ui
