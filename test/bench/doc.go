// Package bench measures Millwright beside the floor: what the same API server needs, on the same
// machine and in the same run, for nothing but the writes. docs/benchmarks.md says how, and what
// that leaves out.
//
// A run starts a whole cluster (package stack), scales a MachineDeployment up, rolls it and scales
// it down, and then stops everything but the API server and etcd and writes once more what all of
// them wrote, from the audit log. It never fails on a time; it fails when the run itself is wrong,
// with a VM too many or a machine left.
package bench
