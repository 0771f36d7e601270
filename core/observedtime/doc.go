// Package observedtime keeps the clocks that timeouts run by. They stand still while nobody could
// have seen a machine get on, or helped it to: see docs/adr/0011.
package observedtime
