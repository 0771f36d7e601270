package limiter

import (
	"slices"
	"time"
)

// Polls go before mutations, for they are few: a handful, or one list for all. If a driver
// cannot list or is slow, polls can be many. Then they get half of the slots while mutations
// wait for one. If there is a single slot, they get what the mutations leave.

// AcquirePoll asks for a slot for a poll: nil when the poll has it, else a channel that is closed
// once it has.
func (l *Limiter) AcquirePoll(now time.Time) <-chan struct{} {
	if l.hasRoomForPoll(now) {
		l.underWay++
		l.polls++
		return nil
	}
	turn := make(chan struct{})
	l.pollWaiters = append(l.pollWaiters, turn)
	return turn
}

// AbandonPoll gives up a wait for AcquirePoll's channel, or gives back the slot that came
// meanwhile.
func (l *Limiter) AbandonPoll(turn <-chan struct{}, now time.Time) {
	l.pollWaiters = slices.DeleteFunc(l.pollWaiters, func(one chan struct{}) bool { return one == turn })
	select {
	case <-turn:
		l.ReleasePoll(now)
	default:
	}
}

// ReleasePoll gives a poll's slot back. A poll that waits gets it at once: nobody may be there to
// call Next, and who waits by the channel waits for nothing else.
func (l *Limiter) ReleasePoll(now time.Time) {
	l.underWay--
	l.polls--
	l.grantPolls(now)
}

// hasRoomForPoll says whether a slot is free for a poll.
func (l *Limiter) hasRoomForPoll(now time.Time) bool {
	return l.isFree() && (l.polls < l.limit/2 || l.first(now) == nil)
}

// grantPolls gives polls that wait what is free for them.
func (l *Limiter) grantPolls(now time.Time) {
	for len(l.pollWaiters) > 0 && l.hasRoomForPoll(now) {
		close(l.pollWaiters[0])
		l.pollWaiters = l.pollWaiters[1:]
		l.underWay++
		l.polls++
	}
}
