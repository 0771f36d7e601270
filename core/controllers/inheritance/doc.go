// Package inheritance keeps what machines inherit from: a MachineClass or Cluster, and the Secrets that it names, are not
// deleted while a MachineDeployment, MachineSet or Machine names it. Secrets it knows by name only: it lists none and watches
// none, and leaves alone those that the manager may not patch.
package inheritance
