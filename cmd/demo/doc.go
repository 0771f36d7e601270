// Package demo shows Millwright's main job to a person who watches, and checks it while it does: a
// MachineDeployment becomes Nodes, is scaled, rolls under a running application, and goes without
// leaving anything behind.
package demo
