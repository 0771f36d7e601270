// Package core is the map of the generic core. It holds no code: the packages below it do.
//
// Everything reads, decides and writes in that order. A controller reads caches into a plain value, a pure function
// decides, the controller writes what it decided. Only the pure packages think, and they take time as a value:
//
//	rollout    MachineDeployment: what to do with its MachineSets
//	scale      MachineSet: whom to create, whom to delete
//	lifecycle  Machine: the next step, given its spec, its VM, its Node, its pods and the time
//	providerspec  what a cloudProviderSpec inherits and refers to
//	orphan     VMs that belong to no Machine: which of them may go now
//	foreign    which objects of the API group another system works on
//	instance   what is known of a VM, and how a call to its driver failed
//
// The packages that do I/O for them:
//
//	driver       the client of drivers: handshake, deadlines, one mutating call per uid, shared status polling, error classes
//	specresolver  a machine's spec with all that it inherits; secrets for it, once the operator's rules have passed,
//	             from their Secrets or from the copies of those
//	bootstrap    user data
//	drain        cordon and evict
//	controllers  one package per kind: observe, plan, apply; orphan collects VMs without a Machine, credentials keeps copies
//	             of Secrets, readonly replaces all others
//	manager      wiring: client, caches, the leader's Lease
//
// To follow a Machine: controllers/machineset creates it, controllers/machine observes it, lifecycle.Next says what is next,
// driver makes the call, and the answer wakes controllers/machine again.
//
// No package here knows a provider by name; differences are capabilities that a driver declares.
package core
