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
// With Options.Upstream it is none of this itself, but stands before real services: what it is
// asked they are asked, the same faults strike on the way, and the hooks tell what an administrator
// sees of the project. Whatever is tried on the simulator can so be tried on them.
//
// All services share one port and tell each other apart by the path:
//
//	/v3          Keystone      /networking  Neutron      /volume/v3/PROJECT  Cinder
//	/compute/v2.1  Nova        /image       Glance
package openstacksim
