// Package core is the map of the generic core. It holds no code: the packages below it do.
//
// Everything reads, decides and writes in that order. A controller reads caches into a plain value,
// a pure function decides, the controller writes what it decided. Only the pure packages think, and
// they take time as a value:
//
//	rollout          MachineDeployment: what to do with its MachineSets
//	scale            MachineSet: whom to create, whom to delete; rollout/rescale.go says which set
//	                 of a MachineDeployment gives one up
//	forecast         in which waves a MachineDeployment gets where it should be, before it goes
//	health           which Machines have failed, and which of them may be replaced now;
//	                 controllers/machineset/healthtracker.go counts the fleet for it
//	healthcheck      MachineHealthChecks: which Machines they find unhealthy, and have replaced
//	lifecycle        Machine: the next step, given its spec, VM, Node, pods and the time, and the
//	                 status that tells of it; join.go has the timeout for its Node
//	machinetemplate  what of a template needs another VM, and what reaches Machines in place
//	annotations      what users and autoscalers ask of an object
//	providerspec     a cloudProviderSpec: layers, references, and its driver's JSON Schema
//	orphan           VMs that belong to no Machine: which of them may go now
//	foreign          how another system marks the objects that it works on
//	instance         what is known of a VM, what came of a call, how it failed, and how long to
//	                 wait then
//	driver/limiter   whose turn it is to call a driver: a slot of the driver, and the circuit
//	                 breaker of an account
//	earliest         what is due first of two instants or delays
//	messages         how much of a text a condition, an Event or a finding holds
//	bootstrap/token  the bootstrap token of a machine: its id, its Secret, how long it lasts;
//	                 lifecycle/create.go decides when it is minted, lifecycle/token.go when it is
//	                 extended and deleted
//	bootstrap/csr    which certificates a machine's kubelet may have: rules.go has the rules of
//	                 each kind of request, form.go those of all
//
// Two more are pure but not fenced, since they encode with libraries that could do more:
//
//	bootstrap           user data
//	bootstrap/template  files and units that operators write as templates, and how values are
//	                    quoted there
//
// The packages that do I/O for them:
//
//	driver             the client of drivers: deadlines, one mutating call per uid; mutation.go
//	                   says under Reserve what may hold a call back
//	driver/connection  keeps a driver connected: handshake, capabilities, probes
//	driver/poller      polls VMs, one by one or by lists
//	driver/wire        requests of the contract, and what core makes of answers and errors
//	driverstatus  how drivers do, as the manager publishes it
//	specresolver  a machine's spec with all that it inherits; its secrets, once the operator's
//	              rules have passed, from their Secrets or from the copies of those
//	bootstrap/discovery  what user data needs besides the Machine, from flags, its Cluster and the
//	              cluster of the Nodes
//	drain         cordon and evict, and which volumes are still attached; lifecycle/drain.go
//	              and volumes.go show in the conditions Drained and VolumesDetached what is
//	              waited for
//	daemonsets    which critical DaemonSets a Node still waits for
//	ownership     owners, adoption and synced metadata of MachineSets and Machines, an owner's
//	              Machines from the cache, and when the name of a Machine is used up
//	apiserver     what versions of objects and errors of the API server tell
//	machinepages  Machines on the API server itself, a page at a time
//	surge         what rollouts and replacements may have beyond a deployment's replicas
//	coexistence   which objects another system's controllers work on: these are left alone
//	conditions    conditions in a status: find, compare, bound, write
//	observedtime  the clocks that timeouts run by, which stand still in outages
//	workload      reaches the cluster of the Nodes where that is not the one of the Machines
//	remediation   which Machines health checks want replaced at this moment
//	requeue       when a controller looks again
//	metrics       the metrics of controllers
//	admission     the webhook that refuses what could never work
//	manager       wiring: client, caches, the leader's Lease
//
// The controllers, observe, plan, apply:
//
//	controllers/machinedeployment  sets of a deployment
//	controllers/machineset         Machines of a set
//	controllers/machine            a Machine's VM and Node
//	controllers/machinehealthcheck  what health checks find, on Machines
//	controllers/csrapproval        certificates of a Machine's kubelet
//	controllers/nodegroup          what cluster-autoscaler is told of a deployment's machines
//	controllers/inuse              classes and clusters in use are kept
//	controllers/credentials        copies of Secrets outlive their namespace
//	controllers/orphangc           VMs without a Machine are collected
//	controllers/readonly           replaces all others where nothing may be written
//
// For tests:
//
//	internal/controllertest  an API server, and actors that play the other controllers
//	internal/histories       generated histories
//
// To follow a Machine: controllers/machineset creates it, controllers/machine observes it,
// lifecycle.Next says what is next, driver makes the call, and the answer wakes controllers/machine
// again. To follow an error of a driver: driver/wire/classify.go gives it a class,
// instance/backoff.go the wait until the next call, lifecycle/create.go and lifecycle/delete.go
// what the Machine shows.
//
// No package here knows a provider by name; differences are capabilities that a driver declares.
package core
