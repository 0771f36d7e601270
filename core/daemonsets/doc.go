// Package daemonsets tells which critical DaemonSets still have no Ready pod on a Node: until they
// have, the Node cannot do its work, and its machine is not Running. See docs/adr/0032.
//
// Critical is a DaemonSet of the namespaces that the operator names whose pods have the priority
// class system-node-critical, as those of networks and volumes have. It counts for a Node if
// the DaemonSet controller would run a pod of it there. Start-up taints that a DaemonSet does not
// tolerate keep it out of that, else each would wait for the other.
//
// Nothing is watched. DaemonSets are listed at most once in a few seconds, for all Nodes together.
// Pods are listed with each look, of one Node, by the API server's cache.
package daemonsets
