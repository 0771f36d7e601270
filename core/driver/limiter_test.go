package driver

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestLimiterGrantsRequestsInTurn(t *testing.T) {
	s := newLimiter(1)
	if !s.take("a", epoch) {
		t.Fatal("the first request finds no free slot")
	}
	for _, uid := range []string{"b", "c", "b"} {
		if s.take(uid, epoch) {
			t.Errorf("%s got a slot beside a", uid)
		}
	}
	s.release()
	if diff := cmp.Diff([]string{"b"}, s.turns(epoch)); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if s.take("d", epoch) || s.take("c", epoch) {
		t.Error("somebody came before b")
	}
	if !s.take("b", epoch) {
		t.Error("b's turn was given away")
	}
}

func TestATurnThatIsNotTakenPassesOn(t *testing.T) {
	s := newLimiter(1)
	if !s.reserve("a", epoch) || s.reserve("b", epoch) {
		t.Fatal("a reservation is not exclusive")
	}
	if got := s.turns(epoch.Add(reservation - 1)); len(got) != 0 {
		t.Errorf("%v got a slot that is set aside for a", got)
	}
	if diff := cmp.Diff([]string{"b"}, s.turns(s.expiry())); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestAReservationSurvivesAShrinkingLimit(t *testing.T) {
	s := newLimiter(2)
	s.take("a", epoch)
	s.reserve("b", epoch)
	s.reserve("c", epoch)
	s.halve()
	if s.take("b", epoch) {
		t.Fatal("b got a slot beyond what is allowed")
	}
	s.release()
	if diff := cmp.Diff([]string{"b"}, s.turns(epoch)); diff != "" {
		t.Errorf("turns, b being the first (-want +got):\n%s", diff)
	}
	s.grow()
	if s.allowed != 2 {
		t.Errorf("allowed %d after a success, want 2", s.allowed)
	}
	s.grow()
	if s.allowed != 2 {
		t.Errorf("allowed %d, beyond the driver's own limit", s.allowed)
	}
}

func TestPollsGoFirstAndCanBeAbandoned(t *testing.T) {
	s := newLimiter(2)
	s.take("a", epoch)
	s.take("c", epoch)
	s.take("b", epoch)
	first, second := s.acquirePoll(), s.acquirePoll()
	s.release()
	if got := s.turns(epoch); len(got) != 0 {
		t.Errorf("%v came before a look", got)
	}
	select {
	case <-first:
	default:
		t.Error("the first look was not told of its slot")
	}
	s.abandonPoll(second)
	s.abandonPoll(first)
	if diff := cmp.Diff([]string{"b"}, s.turns(epoch)); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestPollsThatNeverEndStarveNoMutation(t *testing.T) {
	for _, limit := range []int{1, 2, 5} {
		s := newLimiter(limit)
		for range 20 * limit {
			s.acquirePoll()
		}
		if s.take("a", epoch) {
			t.Fatalf("limit %d: a mutation beside as many looks as may be", limit)
		}
		// Each look that ends is followed by another.
		for ends := 1; ; ends++ {
			s.releasePoll()
			turns := s.turns(epoch)
			s.acquirePoll()
			if len(turns) > 0 {
				break
			}
			if ends > limit {
				t.Fatalf("limit %d: after %d looks the mutation waits still", limit, ends)
			}
		}
		if !s.take("a", epoch) {
			t.Errorf("limit %d: the mutation's turn was given away", limit)
		}
	}
}

// slotsModel is a driver's requests as a history of calls has them.
type limiterModel struct {
	s           *limiter
	now         time.Time
	under       []string
	pollWaiters []<-chan struct{}
	polled      int
}

func (m *limiterModel) settle() {
	var waiting []<-chan struct{}
	for _, turn := range m.pollWaiters {
		select {
		case <-turn:
			m.polled++
		default:
			waiting = append(waiting, turn)
		}
	}
	m.pollWaiters = waiting
}

func TestLimiterHoldsInEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &limiterModel{s: newLimiter(rapid.IntRange(1, 4).Draw(t, "limit")), now: epoch}
		uid := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "uid")) })
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) { m.s.reserve(uid.Draw(t, "who"), m.now) },
			"take": func(t *rapid.T) {
				if who := uid.Draw(t, "who"); m.s.take(who, m.now) {
					m.under = append(m.under, who)
				}
			},
			"look": func(*rapid.T) {
				if turn := m.s.acquirePoll(); turn != nil {
					m.pollWaiters = append(m.pollWaiters, turn)
					return
				}
				m.polled++
			},
			"release": func(t *rapid.T) {
				if len(m.under) == 0 {
					t.Skip("nothing is under way")
				}
				m.under = m.under[1:]
				m.s.release()
				m.s.turns(m.now)
			},
			"releaseLook": func(t *rapid.T) {
				if m.polled == 0 {
					t.Skip("no look is under way")
				}
				m.polled--
				m.s.releasePoll()
				m.s.turns(m.now)
			},
			"abandon": func(t *rapid.T) {
				if len(m.pollWaiters) == 0 {
					t.Skip("no look waits")
				}
				m.s.abandonPoll(m.pollWaiters[0])
				m.pollWaiters = m.pollWaiters[1:]
			},
			"drop":    func(t *rapid.T) { m.s.drop(uid.Draw(t, "who")) },
			"dropAll": func(*rapid.T) { m.s.dropAll() },
			"wait":    func(*rapid.T) { m.now = m.now.Add(reservation / 2); m.s.turns(m.now) },
			"shrink":  func(*rapid.T) { m.s.halve() },
			"grow":    func(*rapid.T) { m.s.grow() },
			"": func(t *rapid.T) {
				m.settle()
				if m.s.used > m.s.limit || m.s.used != len(m.under)+m.polled || m.s.polls != m.polled {
					t.Fatalf("%d in use of %d; %d mutations and %d looks are under way", m.s.used, m.s.limit, len(m.under), m.polled)
				}
				if len(m.s.queue) != len(m.s.queued) {
					t.Fatalf("queue %v and its index %v differ", m.s.queue, m.s.queued)
				}
			},
		})
		m.drainAll(t)
	})
}

// drainAll lets everything end, and expects that everybody who waits gets a turn.
func (m *limiterModel) drainAll(t *rapid.T) {
	for range 100 {
		m.settle()
		for range m.under {
			m.s.release()
		}
		for range m.polled {
			m.s.releasePoll()
		}
		m.under, m.polled = nil, 0
		m.now = m.now.Add(reservation)
		m.s.turns(m.now)
	}
	if len(m.s.queue) > 0 || len(m.pollWaiters) > 0 {
		t.Fatalf("%v and %d looks wait for ever", m.s.queue, len(m.pollWaiters))
	}
}
