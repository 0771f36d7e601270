// Package sdk serves a driver, written in Go, to Millwright's core.
//
// An author implements [Driver], four methods, and calls [Serve] from main:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := sdk.Serve(ctx, driver, sdk.Options{Endpoint: *endpoint})
//
// A driver that can do more implements more of the interfaces in this package, such as [Lister].
// Its capabilities follow from that and cannot be untrue.
//
// Methods take and return the contract's own messages. A set of Go structs of the same fields would
// read a little better here, and would cost every author a second vocabulary: the contract's
// comments are the documentation, and core's logs, the conformance checks and drivers in other
// languages all use its names. Where a response holds one machine, methods return that machine.
//
// What the package does, so that no driver has to:
//   - It refuses requests whose shape is wrong before the driver sees them, and user data beyond
//     the driver's limit.
//   - It turns every error into what core can read. One of [NewError] becomes its reason's code
//     with ErrorInfo and details. Any other becomes INTERNAL with PROVIDER_INTERNAL. The end of the
//     call's own context becomes a status without ErrorInfo, which to core is an unknown outcome. A
//     status is at most 4 KiB.
//   - It takes the call's secrets and user data out of errors, and out of what machines say to
//     people. Names and ids pass as they are.
//   - It refuses mutations of a leader that is not the newest of its cluster (STALE_EPOCH).
//   - It outlives a driver's panic and logs its stack.
//   - It logs messages through [Redacted] alone.
//   - It takes over a socket that kill -9 left behind and refuses one that is alive; it stops
//     gracefully.
//   - It serves the gRPC health service.
//
// What it has for drivers that want it: [ReadProvider] reads a cloudProviderSpec with its secrets,
// as strictly as the contract wants it, [SchemaOf] makes the schema of the same struct, [Page] cuts
// a list into pages. [Locks] keep calls for one machine apart, [Clients] keeps one client of the
// cloud for each account, [CloudTransport] limits and counts calls to the cloud. The contract's
// messages are here under their own names, such as [Machine].
//
// It does not retry or remember anything about machines for a driver: two drivers can serve one
// cloud, so only the cloud's own state is evidence.
package sdk
