// Package driver is the client of drivers, and everything core knows about talking to them. What it
// is made of:
//
//	connection  how a driver is reached: handshake, capabilities, probes, connecting anew
//	limiter     which machines may call now: concurrency and circuit breakers
//	poller      polls of the VMs' status, one by one or by lists
//	wire        requests, and how answers and failures are read
//
// A machine's reconcile does not wait for a driver: it starts a call and goes on. When the call
// ends, when an observation changes or when the driver comes back, Drivers.Events wakes the
// machine's reconcile. The reconcile then asks Collect and Observed. ListOwned, CheckSpec and
// InstanceTemplate do wait for the driver's answers: the controller of Machines calls none of
// them. Nothing here retries a mutation: lifecycle decides when the next one may start
// (Memory.RetryAt).
//
// Read three files first. What a Driver is made of is in client.go. A create or delete, from
// the request to its outcome, is in mutation.go. Who is polled, and who is woken, is in
// serve.go. A console is read in console.go.
//
// What holds for every call:
//   - at most one mutation per uid is under way, and at most limits.max_concurrent_requests per
//     driver. Identity calls do not count: they must answer even under load;
//   - a call has a deadline, and no mutation's deadline reaches beyond the leader's Lease;
//   - sizes are checked before anything is sent;
//   - a driver that was not there when its call was to start is Unavailable: nothing happened.
//     Anything else that is not the driver's own, well-formed word is OutcomeUnknown;
//   - what a driver says to people holds none of the secrets that went with the call:
//     connection/redaction.go takes them out before anything else sees them;
//   - the connection carries calls only after the handshake on that very connection: a reconnect is
//     a new driver until it has said who it is.
//
// Only wire/classify.go decides by the gRPC status of a call; metrics.go counts its code,
// connection/redaction.go cleans its text.
package driver
