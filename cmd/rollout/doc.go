// Package rollout is what a person does with the rollout of a MachineDeployment: look at it, go
// back, pause, resume, restart, scale. Everything happens in the client, by the fields and
// annotations that anybody else may use, as kubectl does it for Deployments.
package rollout
