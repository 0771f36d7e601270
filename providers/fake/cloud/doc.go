// Package cloud is a small cloud in memory, made for tests and demos: VMs and NICs, accounts,
// quotas, delays. It serves two gRPC services. The fake driver calls its own API,
// millwright.fakecloud.v1alpha1. Tests call the hooks of millwright.backend.v1alpha1: they see what
// the cloud holds and was asked, and make it misbehave.
//
// Three things make it a fair judge of a driver:
//
//   - A call that was received is finished, also when its caller has gone: latency and held calls
//     do not watch the caller's context. So a driver that is killed may find later what it asked
//     for.
//   - It keeps a ledger of every call and of every VM, also of those that are gone.
//   - With a journal it is what it was after kill -9: every effect is written before it is
//     answered. Faults are not kept.
//
// The journal is not synced to disk: it outlives the process, not the machine.
package cloud
