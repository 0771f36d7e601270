// Package plan draws what happens in a round of chaos: what users do, and what goes wrong
// meanwhile. A round's plan is a value that follows from the campaign's seed and the round's number
// alone. So a failing round can be had again. What the processes make of it differs from run to
// run: their timing is theirs.
package plan
