// Package testcloud is what clouds for tests have in common, so that an author who simulates one
// writes its API and its state alone. A [Front] notes every call in a [Ledger] and lets each
// [Fault] that matches it take effect. [Hooks] serve both as millwright.backend.v1alpha1. With a
// [Journal] the cloud outlives its process.
//
// A call goes so:
//
//	turn := front.Begin(testcloud.Arrival{
//		Operation: "CreateVM", Machines: []string{uid}, CreatesVM: true, Creates: true,
//	})
//	err := front.Run(ctx, turn, testcloud.Errors(cloud.error), func() error {
//		return front.TakeEffect(turn, func() error { … })
//	})
//	front.End(ctx, turn, testcloud.Answer{Code: …, Message: …, Err: err})
package testcloud
