// Package bench measures Millwright beside the floor: what the same API server needs for nothing
// but the writes. Both are measured on the same machine and in the same run. docs/benchmarks.md
// says how, and what that leaves out.
//
// A run starts a whole cluster (package stack), scales a MachineDeployment up, rolls it and scales
// it down. Then it stops everything but the API server and etcd. From the audit log it writes once
// more what all of them wrote. It never fails on a time; it fails when the run itself is wrong,
// with a VM too many or a machine left.
package bench
