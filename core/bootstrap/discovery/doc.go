// Package discovery finds what a machine's user data needs besides the Machine (bootstrap.Config).
// Each field comes from the first of these that has it:
//
//	the Machine's annotation   see core/bootstrap/annotations.go
//	its Cluster                spec.apiEndpoints, spec.clusterNetwork, spec.bootstrap
//	the manager's flag         --node-…
//	the cluster of the Nodes   see facts.go; read at most once a minute
//	the default                see bootstrap.Config
//
// What is required and in none of them is an IncompleteError, which names the places.
package discovery
