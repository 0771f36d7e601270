// Package stack runs Millwright whole on a local cluster: the control plane, a test cloud, the
// cloud's driver, the manager and simulated kubelets. Each is a process of its own. The manager has
// its own ServiceAccount and the shipped RBAC. Demo, `millwright dev`, tests and benchmarks are
// built on it.
package stack
