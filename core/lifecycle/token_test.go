package lifecycle

import (
	"testing"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// TestTokenLastsWhileAVMMayJoin: the token is extended in time once a create is sent, also while
// that is under way: its VM may boot before the answer comes.
func TestTokenLastsWhileAVMMayJoin(t *testing.T) {
	sent := func(s *State) {
		s.Memory, s.Driver.UnderWay = Memory{Attempted: instance.Create, AttemptedAt: s.Now}, true
	}
	for name, c := range map[string]struct {
		given  []func(*State)
		renews bool
	}{
		"a create that is under way": {[]func(*State){intended, sent}, true},
		"a create that was refused":  {[]func(*State){intended, ended(instance.Create, instance.Failure{Class: instance.Quota})}, false},
		"a VM that boots":            {[]func(*State){provisioned}, true},
		"a VM whose Node is there":   {[]func(*State){provisioned, joined("False")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(c.given...)
			s.Token.RenewAt = s.Now.Add(time.Minute)
			if step := Next(s); step.Do == RenewToken {
				t.Error("the token is extended before its time")
			}
			s.Now = s.Token.RenewAt
			if step := Next(s); (step.Do == RenewToken) != c.renews {
				t.Errorf("does %v, want the token extended: %t", step.Do, c.renews)
			}
		})
	}
}
