// Package inuse keeps what machines inherit from: a MachineClass or Cluster is not deleted while a
// MachineDeployment, MachineSet or Machine names it. Secrets need no such protection: see
// core/controllers/credentials.
package inuse
