// Package healthcheck says which Machines of a namespace its MachineHealthChecks find unhealthy,
// and which of those are to be replaced. It is pure: values in, values out; time is a field of a
// value.
//
// A Machine is unhealthy for a check when one of the check's conditions has lasted for its timeout.
// A condition that has not is not harmless, though: where half of all Nodes fell silent a moment
// ago, the first whose timeout is over must not go. So what may be unhealthy soon counts for the
// limits of the check as if it were.
//
// A check within its limits asks for all its unhealthy Machines to be replaced, a check beyond them
// for none. Whether a Machine is replaced now, package health decides for its set: there the
// replacements are counted, whatever has asked for them, and a meltdown stops all.
//
// Time counts while it was observed, and from when this process first saw a condition: see
// docs/adr/0011. Clocks of kubelets, which write the conditions of Nodes, do not matter.
package healthcheck
