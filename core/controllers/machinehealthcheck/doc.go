// Package machinehealthcheck shows on Machines what health checks find of them, and has their sets
// replace those that are unhealthy: see package healthcheck. It looks at all Machines and checks of
// a namespace at once, so that of several checks that select the same Machine one answer comes.
//
// It deletes nothing. Two conditions of a Machine are its own: HealthCheckSucceeded says what is
// wrong, OwnerRemediated what is done about it. A Machine that is healthy has neither, so that
// nothing is written for it.
package machinehealthcheck
