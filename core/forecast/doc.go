// Package forecast tells how a MachineDeployment gets from the machines it has to those that it
// should have, wave by wave, before anything is done. It is pure.
//
// Packages rollout and scale decide, as they do in the controllers. This package plays what
// happens between: a wave is all that the controllers do until they have to wait. Then every
// machine that is on its way out goes, and every one that is coming up becomes available, all at
// once. Machines that have failed, or that have a Node which is not ready, stay as they are: what
// repairs them is not part of a forecast.
//
// In a cluster machines come up one after the other, so that waves flow into each other. What is
// the same there are the machines that go, and the least that are available.
package forecast
