package lifecycle

import (
	"strings"
	"time"
)

// What a VM that did not become a Node has written to its console tells why, mostly. It is asked
// for once, when the time for the Node is over. The machine fails when the answer is there, and
// without it when the driver takes longer than it may.

// awaitConsole asks for the console of a VM whose machine is about to fail, or waits for the
// answer; false when there is nothing to wait for any more.
func awaitConsole(s State, d decision) (decision, bool) {
	if !s.Driver.ConsoleReadable {
		return d, false
	}
	asked := d.Memory.Wait.ConsoleAskedAt
	if asked.IsZero() {
		d.Memory.Wait.ConsoleAskedAt = s.Now
		return d.act(ReadConsole)
	}
	until := asked.Add(s.Driver.ConsoleTimeout)
	if s.Driver.Console == nil || !s.Driver.Console.UnderWay || !s.Now.Before(until) {
		return d, false
	}
	return d.waitUntil(until)
}

// describeConsole says what the console said of a VM that did not become a Node, each line on one
// of its own; empty where nobody asked.
func describeConsole(s State, askedAt time.Time) string {
	answer := s.Driver.Console
	switch {
	case askedAt.IsZero() || answer == nil:
		return ""
	case answer.UnderWay:
		return "\nThe console could not be read: the driver did not answer in time."
	case answer.Failure != nil:
		return "\nThe console could not be read: " + answer.Failure.Message
	case len(answer.Lines) == 0:
		return "\nThe console says nothing."
	}
	return "\nThe console says:\n" + strings.Join(answer.Lines, "\n")
}
