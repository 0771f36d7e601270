// Package workload reaches the cluster of the Nodes where that is not the one of the Machines. Its
// kubeconfig may be replaced at any time. What core may do there are the roles named
// millwright-manager-workload.
package workload
