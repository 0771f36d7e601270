// Package openstacksim is an OpenStack cloud in memory, made for tests, demos and benchmarks:
// Keystone v3, Nova v2.1, Neutron v2.0, Glance v2 and Cinder v3, as far as machines need them. What
// it answers follows the real services of the release Zed: codes, bodies, and the words of errors.
// Beside them it serves the hooks of millwright.backend.v1alpha1, by which tests see what the cloud
// holds and was asked, and make it misbehave.
//
// Three things make it a fair judge of a driver:
//
//   - A call that was received is finished, also when its caller has gone: latency and held calls
//     do not watch the caller's context. So a driver that is killed may find later what it asked
//     for.
//   - It keeps a ledger of every call and of every server, also of those that are gone.
//   - It keeps what OpenStack keeps and nothing better: names are not unique, MAC addresses are
//     within a network, a port that was made before its server outlives it.
//
// With Options.Upstream it is none of this itself, but stands before real services. It passes on to
// them what it is asked, and the same faults strike on the way. The hooks tell what an
// administrator sees of the project. So whatever is tried on the simulator can be tried on them.
//
// Each service has a folder, and all share one port:
//
//	identity  Keystone  /v3                 users, tokens, application credentials, the catalog
//	compute   Nova      /compute/v2.1       servers, flavors, server groups
//	network   Neutron   /networking         networks, ports, floating IPs, routers, trunks
//	volume    Cinder    /volume/v3/PROJECT  volumes and their types
//	image     Glance    /image              images
//
// In each of them service.go has what the service holds, and routes.go the calls that it serves.
// Beside them is what they have in common:
//
//	api       how they are called: a call, its route, its reply; errors, pages, microversions
//	state     what they keep: records, inventories, owners, quotas, the journal
//	apicases  what the real services answer, held against this cloud and against them
//
// This package puts them together. cloud.go opens a cloud, serve.go takes a call from its arrival
// to its answer, seed.go makes the world, and journal.go reads and writes the whole. hooks.go and
// vms.go serve the hooks; the files that begin with upstream stand before real services.
package openstacksim
