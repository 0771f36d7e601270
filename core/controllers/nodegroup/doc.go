// Package nodegroup tells cluster-autoscaler what a machine of a MachineDeployment would offer, so
// that the autoscaler can scale it from zero. It writes what the driver says into the annotations
// that the autoscaler reads, where nobody has written any.
//
// It writes once for each template. An annotation remembers for which, so that another flavor
// brings other values, and a user's own stay as they are.
//
// The autoscaler leaves a deployment alone that is paused: an annotation of Cluster API tells it.
package nodegroup
