package e2e

import "testing"

// Tests that share are together on one stack, as many as may be; one that does not share has a
// stack for itself, or waits.
func TestWhoGetsWhichStack(t *testing.T) {
	t.Parallel()
	l := newLane(2, nil)
	shared := l.await(true)
	if l.find(true) != nil {
		t.Error("a test shares a stack that is not up yet")
	}
	shared.fixture = &fixture{}
	for range maxSharers - 1 {
		if on := l.await(true); on != shared {
			t.Error("tests that share are on two stacks")
		}
	}
	if l.find(true) != nil {
		t.Errorf("more than %d tests share a stack", maxSharers)
	}
	alone := l.await(false)
	if alone == shared {
		t.Error("a test that disturbs others is on their stack")
	}
	alone.fixture = &fixture{}
	if l.find(false) != nil {
		t.Error("a test that disturbs others gets a stack that is taken, or one too many")
	}
	alone.isTaken = false
	if on := l.find(true); on != nil {
		t.Error("a test that shares takes the stack of those that do not")
	}
	if on := l.find(false); on != alone {
		t.Error("an idle stack is not used again")
	}
	shared.sharers = 0
	if on := l.find(true); on == nil || on.sharers != 0 {
		t.Error("an idle stack is not shared")
	}
}
