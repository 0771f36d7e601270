package scale

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestANumberIsTriedAgainUntilItsOutcomeIsKnown(t *testing.T) {
	n := NewNames("nodes-5f6d", "uid-1", 0)
	tag := n.prefix
	want := func(why string, count int, numbers ...string) {
		t.Helper()
		var names []string
		for _, number := range numbers {
			names = append(names, tag+number)
		}
		if got := n.Take(count); !slices.Equal(got, names) {
			t.Errorf("%s: got %v, want %v", why, got, names)
		}
	}
	n.MarkCreated("stranger")
	want("the first", 2, "0", "1")
	want("nothing is known of them, so the same again", 2, "0", "1")
	n.MarkCreated(tag + "1")
	n.MarkRefused(tag + "1")
	want("of 0 nothing is known yet", 2, "0", "2")
	if n.Next() != 0 {
		t.Errorf("0 is not decided, and yet next is %d", n.Next())
	}
	n.MarkCreated(tag + "0")
	if n.Next() != 2 {
		t.Errorf("0 and 1 are decided, next is %d", n.Next())
	}
	n.MarkRefused(tag + "2")
	want("a refused one may be tried again", 1, "2")
	n.MarkCreated(tag + "3")
	want("what became of it this time is not known", 1, "2")
	n.MarkRefused(tag + "2")
	want("not any more once a later one was created", 1, "4")
	n.MarkRefused(tag + "3")
	n.MarkCreated("stranger")
	n.MarkCreated(tag + "x")
	n.MarkCreated(tag + "-7")
	n.MarkCreated(tag + "07")
	want("nonsense changes nothing", 5, "4", "5", "6", "7", "8")
	n.Raise(2)
	want("nor does what was persisted earlier", 1, "4")
	n.Raise(9)
	want("what another process persisted counts", 1, "9")
}

func TestNumberWhoseAnswerWasLostIsTriedAgainUntilItIsGivenUp(t *testing.T) {
	sent := time.Unix(1_000_000, 0)
	n := NewNames("nodes", "uid", 0)
	names := n.Take(3)
	if !n.LostSince().IsZero() {
		t.Errorf("nothing is lost, and yet since %s", n.LostSince())
	}
	n.MarkLost("stranger", sent)
	for i, name := range names {
		n.MarkLost(name, sent.Add(time.Duration(i)*time.Minute))
	}
	if !n.LostSince().Equal(sent) {
		t.Errorf("the first was lost at %s, and not at %s", sent, n.LostSince())
	}
	n.MarkRefused(names[1])
	if got := n.Take(3); !slices.Equal(got, names) {
		t.Errorf("the refusal of a later request decides nothing: got %v, want %v", got, names)
	}
	n.MarkCreated(names[0])
	n.GiveUpLost(sent.Add(time.Minute))
	if !n.LostSince().Equal(sent.Add(2 * time.Minute)) {
		t.Errorf("the last is lost since %s", n.LostSince())
	}
	n.MarkCreated(names[2])
	if n.Next() != 3 || !n.LostSince().IsZero() {
		t.Errorf("all are decided, next is %d, and one is lost since %s", n.Next(), n.LostSince())
	}
}

func TestNamesFitIntoALabel(t *testing.T) {
	long := NewNames(strings.Repeat("a", 45)+"."+strings.Repeat("b", 17), "uid", 9_999_999_999).Take(1)[0]
	if len(long) > maxName || strings.Contains(long, ".-") {
		t.Errorf("%s has %d characters", long, len(long))
	}
	if a, b := NewNames("nodes", "uid-1", 0).Take(1)[0], NewNames("nodes", "uid-2", 0).Take(1)[0]; a == b {
		t.Errorf("two sets of one name make the same machine: %s", a)
	}
}

func TestANumberIsDecidedOnceNextIsAboveIt(t *testing.T) {
	name := NewNames("nodes", "uid", 5).Take(1)[0]
	for _, tc := range []struct {
		why, name string
		next      int64
		want      bool
	}{
		{"its number might be created again", name, 5, false},
		{"its number is settled", name, 6, true},
		{"not a name of the set", "other", 0, true},
	} {
		if got := IsDecided("nodes", "uid", tc.name, tc.next); got != tc.want {
			t.Errorf("%s: got %v", tc.why, got)
		}
	}
}
