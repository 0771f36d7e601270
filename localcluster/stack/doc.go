// Package stack runs Millwright whole on a local cluster: the control plane, a test cloud, the
// cloud's driver, the manager under its own ServiceAccount and the shipped RBAC, and simulated
// kubelets, each a process of its own. Demo, `millwright dev`, tests and benchmarks are built on
// it.
package stack
