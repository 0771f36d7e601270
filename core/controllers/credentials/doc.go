// Package credentials keeps the copies of Secrets in step with Machines. The Machines' controller
// writes a copy before the first VM is made with a Secret. This package renews it when the Secret
// is rotated, and deletes it when no Machine is made with the Secret any more. See docs/adr/0018.
package credentials
