package poller

import (
	"fmt"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// BenchmarkDue measures one wake of the poller at 10,000 tracked machines of which 1 is due.
func BenchmarkDue(b *testing.B) {
	const count = 10_000
	s := testSchedule()
	now := epoch
	for i := range count {
		s.track(machine(fmt.Sprintf("m-%05d", i)), instance.PollSettled, now, now.Add(time.Hour))
	}
	lone := machine("lone")
	lone.Spec = []byte(`{"account":"lone"}`)
	s.track(lone, instance.PollPending, now, time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		s.track(lone, instance.PollSettled, now, time.Time{})
		s.track(lone, instance.PollPending, now, time.Time{})
		if batches, _ := s.due(now, true); len(batches) > 1 {
			b.Fatalf("%d batches", len(batches))
		}
		s.recordPoll(lone.UID, poll{
			began: now, ended: now, oneByOne: true, instance: &instance.Instance{State: instance.Creating},
		})
	}
}
