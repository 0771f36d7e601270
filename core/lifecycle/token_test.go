package lifecycle

import (
	"cmp"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

func givenUp(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseFailed }

// tokenSent is a machine whose create is written down with its token.
func tokenSent(s *State) {
	intended(s)
	s.Machine.Status = Next(given()).Status
}

// tokenLost is a machine whose token was found to be gone, whose VM it is not known to be there.
func tokenLost(s *State) {
	tokenSent(s)
	s.Token = Token{Known: true, ReadAt: s.Now}
}

// shutOut is a machine whose VM runs without a certificate, and whose token is gone.
func shutOut(s *State) {
	tokenLost(s)
	s.Machine.ProviderID = "cloud:///1"
	seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})(s)
	s.JoinProgress.Message = "Its kubelet has requested no certificate"
	s.Machine.Status = Next(given(tokenSent, func(s *State) {
		s.Machine.ProviderID = "cloud:///1"
		seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})(s)
	})).Status
}

// unsettled has the VM of an earlier process's create appear some time from now at the latest.
func unsettled(s *State) { s.Driver.LeadingSince = s.Now.Add(time.Second - settle) }

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
		"a create of before":         {[]func(*State){intended}, true},
		"a create that was refused":  {[]func(*State){intended, ended(instance.Create, instance.Failure{Class: instance.Quota})}, false},
		"a VM that boots":            {[]func(*State){provisioned}, true},
		"a VM whose Node is there":   {[]func(*State){provisioned, joined("False")}, false},
		"a machine that is paused":   {[]func(*State){provisioned, paused}, true},
		"one that failed":            {[]func(*State){provisioned, paused, givenUp}, false},
		"one that goes":              {[]func(*State){provisioned, paused, deleting}, false},
		"one whose uid is another's": {[]func(*State){provisioned, paused, func(s *State) { s.Machine.UIDTaken = "another" }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(c.given...)
			s.Token.RenewAt, s.Token.ReadAt = s.Now.Add(time.Minute), s.Now
			step := Next(s)
			if step.Do == RenewToken || c.renews && !step.RequeueAt.Equal(s.Token.RenewAt) {
				t.Errorf("does %v before its time, and looks again at %s", step.Do, step.RequeueAt)
			}
			s.Now = s.Token.RenewAt
			if step := Next(s); (step.Do == RenewToken) != c.renews {
				t.Errorf("does %v, want the token extended: %t", step.Do, c.renews)
			}
		})
	}
}

// TestTokenIsReadWhileItsVMIsAwaited: nobody watches Secrets, so the token of a VM that has yet to
// join is read each minute. That of a VM that nobody knows of yet is not.
func TestTokenIsReadWhileItsVMIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		given   func(*State)
		recheck time.Duration
		reads   bool
	}{
		"a VM that boots":            {provisioned, 0, true},
		"one that is read more soon": {provisioned, 6 * time.Second, true},
		"one that is paused":         {all(provisioned, paused), 0, true},
		"a create that is under way": {all(intended, func(s *State) { s.Memory.Attempted, s.Driver.UnderWay = instance.Create, true }), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(c.given)
			s.Token = Token{Known: true, ReadAt: s.Now.Add(time.Nanosecond - cmp.Or(c.recheck, tokenRecheck)), RenewAt: s.Now.Add(time.Hour), Recheck: c.recheck}
			if step := Next(s); step.Do != Nothing || c.reads && step.RequeueAt.Sub(s.Now) != time.Nanosecond {
				t.Errorf("does %v before its time, and looks again at %s", step.Do, step.RequeueAt)
			}
			s.Now = s.Now.Add(time.Nanosecond)
			if step := Next(s); (step.Do == RenewToken) != c.reads {
				t.Errorf("does %v, want the token read: %t", step.Do, c.reads)
			}
		})
	}
}

// TestAVMMayJoinForOneReasonAlone: any of them is enough.
func TestAVMMayJoinForOneReasonAlone(t *testing.T) {
	refused := func(s *State) {
		intended(s)
		s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Quota}}
	}
	for name, c := range map[string]struct {
		given func(*State)
		may   bool
	}{
		"a create that was refused":            {refused, false},
		"a VM that is known":                   {all(refused, func(s *State) { s.Machine.ProviderID = "cloud:///1" }), true},
		"a create without an answer":           {all(refused, func(s *State) { s.Memory.MaybeCreated = true }), true},
		"a create that is under way":           {all(refused, func(s *State) { s.Memory.Attempted = instance.Create }), true},
		"a delete that is under way":           {all(refused, func(s *State) { s.Memory.Attempted = instance.Delete }), false},
		"a create that another process begins": {intended, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayJoin(given(c.given)); got != c.may {
				t.Errorf("may join: %t", got)
			}
		})
	}
}

// TestNoVMIsThereOnceEveryCreateIsOver: what was seen before proves nothing.
func TestNoVMIsThereOnceEveryCreateIsOver(t *testing.T) {
	endedAt := func(ago time.Duration) func(*State) {
		return func(s *State) {
			s.Memory.Last = &instance.Outcome{Operation: instance.Create, Ended: s.Now.Add(-ago), Failure: &instance.Failure{Class: instance.Quota}}
		}
	}
	gone := missing(missesUntilGone)
	for name, c := range map[string]struct {
		given  func(*State)
		absent bool
	}{
		"a machine that nobody has asked for":      {func(*State) {}, false},
		"one that the driver does not find":        {gone, true},
		"that was not found once":                  {missing(missesUntilGone - 1), false},
		"that was not found after its create":      {all(gone, endedAt(time.Nanosecond)), true},
		"that was not found as its create ended":   {all(gone, endedAt(0)), false},
		"one whose VM is known":                    {all(gone, func(s *State) { s.Machine.ProviderID = "cloud:///1" }), false},
		"one that may have a VM soon":              {all(gone, func(s *State) { s.Memory.UncertainAt = s.Now.Add(time.Nanosecond - settle) }), false},
		"one that would have its VM by now":        {all(gone, func(s *State) { s.Memory.UncertainAt = s.Now.Add(-settle) }), true},
		"one of which a create left something":     {seen(instance.Instance{State: instance.Failed}), true},
		"one whose VM runs":                        {seen(instance.Instance{State: instance.Running, ProviderID: "cloud:///1"}), false},
		"one whose create failed, not asked since": {endedAt(time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isAbsent(given(c.given)); got != c.absent {
				t.Errorf("absent: %t", got)
			}
		})
	}
}

// TestTokenIsDeletedWithItsMachine: unless the token of that name is another's.
func TestTokenIsDeletedWithItsMachine(t *testing.T) {
	there := func(s *State) { s.Token = Token{Known: true, RenewAt: s.Now.Add(time.Hour)} }
	for name, c := range map[string]struct {
		given func(*State)
		want  Action
	}{
		"a token that is there":       {there, DeleteToken},
		"none":                        {func(*State) {}, Nothing},
		"of a machine without a uid":  {all(there, func(s *State) { s.Machine.UID = "" }), Nothing},
		"of a uid that is another's":  {all(there, func(s *State) { s.Machine.UIDTaken = "another has it" }), Nothing},
		"of a machine without a Node": {all(there, func(s *State) { s.Machine.Nodeless = true }), Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := decideTokenOver(given(c.given), decision{}); got.Do != c.want {
				t.Errorf("does %q", got.Do)
			}
		})
	}
}

// TestLIFE3_LostTokens shows what becomes of machines whose token somebody has deleted.
func TestLIFE3_LostTokens(t *testing.T) {
	const waiting, gone = "NodeReady False WaitingForNode", "NodeReady False TokenMissing"
	checkSteps(t, map[string]wantStep{
		"a VM that has yet to join never does": {
			given: shutOut, condition: gone, message: "the VM can never join.", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"which the machine says first": {
			given: shutOut, condition: "Ready False TokenMissing", message: "has no certificate", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"nor does one that boots": {
			given:     all(shutOut, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating})),
			condition: gone, message: "the VM can never join.", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"one whose kubelet has its certificate is waited for": {
			given: all(shutOut, func(s *State) { s.JoinProgress.Approved = true }), condition: waiting, poll: instance.PollSettled,
			phase: clusterv1alpha1.MachinePhaseProvisioned, silent: true,
		},
		"and one of which nobody can tell": {
			given: all(shutOut, func(s *State) { s.JoinProgress = JoinProgress{} }), condition: waiting, poll: instance.PollSettled,
			phase: clusterv1alpha1.MachinePhaseProvisioned, silent: true,
		},
		"one whose token nobody has looked for is looked at first": {
			given: all(shutOut, func(s *State) { s.Token = Token{} }), do: RenewToken, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"one that the cloud has given up says that": {
			given:     all(shutOut, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Failed})),
			condition: "InstanceReady False Failed", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"and one that is gone": {
			given: all(shutOut, missing(missesUntilGone)), condition: "InstanceReady False Missing", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"a Node that fits two machines is waited for": {
			given:     all(shutOut, func(s *State) { s.Node = Node{Match: NodeConflicting, Conflict: "two"} }),
			condition: "NodeReady False NodeConflict", poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"a paused machine waits": {
			given: all(shutOut, paused), condition: "Paused True PausedByAnnotation", phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"a create in doubt is not repeated without its token": {
			given: all(tokenLost, func(s *State) { s.Memory.MaybeCreated = true }, patient), condition: gone, message: "is asked whether there is one",
			phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"which is not written down at once": {
			given: tokenLost, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending, requeue: driverDebounce,
		},
		"it waits until a VM of that create would be there": {
			given: all(tokenLost, unsettled, missing(missesUntilGone)), silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending, requeue: time.Second,
		},
		"and says why the driver cannot tell": {
			given: all(tokenLost, missing(1), refusedLook(instance.Credentials, false)), condition: "InstanceReady False Credentials",
			phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"a look at the instant of an answer says nothing": {
			given: all(tokenLost, missing(missesUntilGone), func(s *State) {
				s.Memory.Last = &instance.Outcome{Operation: instance.Create, Ended: s.Now, Failure: &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}}
			}), silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending, requeue: driverDebounce,
		},
		"one look that finds nothing says nothing": {
			given: all(tokenLost, missing(missesUntilGone-1)), silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning,
			poll: instance.PollPending, requeue: driverDebounce,
		},
		"it is repeated when there is no VM": {
			given: all(tokenLost, missing(missesUntilGone)), do: Create, phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"as soon as the doubt is over": {
			given: all(tokenLost, func(s *State) { s.Driver.LeadingSince = s.Now.Add(-settle) }, missing(missesUntilGone)), do: Create,
			phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"which the machine says if it has said otherwise": {
			given: all(tokenLost, patient, func(s *State) { s.Machine.Status = Next(*s).Status }, missing(missesUntilGone)), do: Create,
			condition: waiting, phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"and when what is there is no VM": {
			given: all(tokenLost, seen(instance.Instance{State: instance.Failed})), do: Create, phase: clusterv1alpha1.MachinePhaseProvisioning,
			poll: instance.PollPending,
		},
		"a VM that is there is known first": {
			given: all(tokenLost, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})), do: RecordProviderID,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
	})
}

// TestLIFE3_AnotherTokenOnlyWithoutAVM: a create that is repeated takes the token that is there,
// unless no VM can have one.
func TestLIFE3_AnotherTokenOnlyWithoutAVM(t *testing.T) {
	hasToken := func(s *State) { s.Token = Token{Known: true, ReadAt: s.Now, RenewAt: s.Now.Add(time.Hour)} }
	refusedBefore := func(s *State) {
		s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}}
	}
	for name, c := range map[string]struct {
		given   func(*State)
		another bool
	}{
		"the first create":                       {func(*State) {}, true},
		"one that an earlier process has begun":  {all(tokenSent, hasToken), false},
		"one after a refusal":                    {all(tokenSent, hasToken, refusedBefore), false},
		"one whose token nobody has looked for":  {all(tokenSent, refusedBefore, func(s *State) { s.Token = Token{} }), false},
		"one of a core that knew of no tokens":   {intended, true},
		"one whose token is lost, without a VM":  {all(tokenLost, missing(missesUntilGone)), true},
		"one with other trouble before, mended":  {all(tokenSent, hasToken, bootstrapWas(clusterv1alpha1.ReasonBootstrapInvalid)), false},
		"one with a warning":                     {all(tokenSent, hasToken, bootstrapWas(clusterv1alpha1.ReasonKubeletTooOld)), false},
		"one of a status without that condition": {all(tokenSent, hasToken, bootstrapWas("")), true},
		"one made anew with its status":          {all(tokenLost, bootstrapWas(clusterv1alpha1.ReasonBootstrapTokenDeleted), missing(missesUntilGone)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if step := Next(given(c.given)); step.Do != Create || step.NewToken != c.another {
				t.Errorf("does %v, with another token: %t", step.Do, step.NewToken)
			}
		})
	}
}

// bootstrapWas has the status say something else of the user data.
func bootstrapWas(reason string) func(*State) {
	return func(s *State) {
		c := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady)
		c.Reason = reason
		s.Machine.Status = s.Machine.Status.without(c.Type)
		if reason != "" {
			s.Machine.Status = s.Machine.Status.set(c, *s)
		}
	}
}

// TestTokenIsToldOf: BootstrapReady says what became of the token, also once what else was wrong is
// mended.
func TestTokenIsToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		given func(*State)
		want  string
	}{
		"before there is a create":          {func(s *State) { s.Driver.AwaitsTurn = true }, clusterv1alpha1.ReasonBootstrapRendered},
		"with the first":                    {func(*State) {}, clusterv1alpha1.ReasonBootstrapTokenCreated},
		"with the first, and a warning":     {func(s *State) { s.BootstrapWarning = "old" }, clusterv1alpha1.ReasonKubeletTooOld},
		"after a warning":                   {all(shutOut, bootstrapWas(clusterv1alpha1.ReasonKubeletTooOld)), clusterv1alpha1.ReasonBootstrapTokenCreated},
		"of a core that knew of none":       {provisioned, clusterv1alpha1.ReasonBootstrapRendered},
		"when the Node is there":            {all(shutOut, joined("True")), clusterv1alpha1.ReasonBootstrapTokenDeleted},
		"when it is, with a warning":        {all(shutOut, joined("True"), func(s *State) { s.BootstrapWarning = "old" }), clusterv1alpha1.ReasonKubeletTooOld},
		"when it runs, after a warning":     {all(running, bootstrapWas(clusterv1alpha1.ReasonKubeletTooOld)), clusterv1alpha1.ReasonBootstrapTokenDeleted},
		"when it runs, of a core without":   {all(running, bootstrapWas(clusterv1alpha1.ReasonBootstrapRendered)), clusterv1alpha1.ReasonBootstrapRendered},
		"when it runs, without a condition": {all(running, bootstrapWas("")), clusterv1alpha1.ReasonBootstrapTokenDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(c.given)
			s.Now = s.Now.Add(limiterDebounce)
			s.Token.ReadAt = s.Now
			got := Next(s).Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
			if s.Driver.AwaitsTurn {
				s.Memory = Next(s).Memory
				s.Now = s.Now.Add(limiterDebounce)
				got = Next(s).Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestTokenState: what the status says and what this process has seen of the token make one state.
func TestTokenState(t *testing.T) {
	recorded := func(reason string) func(*State) { return all(tokenSent, bootstrapWas(reason)) }
	hasVM := func(s *State) { s.Machine.ProviderID = "cloud:///1" }
	isRunning := all(hasVM, func(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseRunning })
	unread := func(s *State) { s.Token = Token{} }
	there := func(s *State) { s.Token = Token{Known: true, RenewAt: s.Now.Add(time.Hour)} }
	for name, c := range map[string]struct {
		given func(*State)
		want  TokenState
	}{
		"before a create":                           {func(*State) {}, TokenPending},
		"before a create, minted":                   {there, TokenPending},
		"of a core that knew of none":               {recorded(clusterv1alpha1.ReasonBootstrapRendered), TokenPending},
		"of such a core, running":                   {all(recorded(clusterv1alpha1.ReasonBootstrapRendered), isRunning), TokenPending},
		"sent by an earlier process":                {all(tokenSent, unread), TokenSent},
		"sent":                                      {all(tokenSent, there), TokenSent},
		"sent, with a warning":                      {all(recorded(clusterv1alpha1.ReasonKubeletTooOld), there), TokenSent},
		"sent, and not there":                       {tokenSent, TokenLost},
		"deleted":                                   {all(recorded(clusterv1alpha1.ReasonBootstrapTokenDeleted), hasVM), TokenDeleted},
		"deleted, and made anew without its VM":     {recorded(clusterv1alpha1.ReasonBootstrapTokenDeleted), TokenLost},
		"running":                                   {all(tokenSent, isRunning), TokenDeleted},
		"not needed, says the user data":            {func(s *State) { s.Token.NotNeeded = true }, TokenNotNeeded},
		"not needed, says an earlier process":       {all(recorded(clusterv1alpha1.ReasonBootstrapTokenNotNeeded), unread), TokenNotNeeded},
		"not needed, and there from before an edit": {all(recorded(clusterv1alpha1.ReasonBootstrapTokenNotNeeded), there), TokenSent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := given(c.given).TokenState(); got != c.want {
				t.Errorf("state %s, want %s", got, c.want)
			}
		})
	}
}

// TestNoTokenIsNeeded: user data without a place for a token is said to need none, before the
// create and to each process afterwards; the token of an earlier create is kept and deleted as any
// other.
func TestNoTokenIsNeeded(t *testing.T) {
	notNeeded := func(s *State) { s.Token = Token{Known: true, NotNeeded: true} }
	recorded := func(s *State) {
		notNeeded(s)
		s.Machine.Status = Next(*s).Status
		s.Token = Token{}
	}
	warned := func(s *State) { s.BootstrapWarning = "The kubelet is old." }
	const none, created = clusterv1alpha1.ReasonBootstrapTokenNotNeeded, clusterv1alpha1.ReasonBootstrapTokenCreated
	known := func(s *State) { s.Token = Token{Known: true, ReadAt: s.Now} }
	joining := func(s *State) { s.JoinProgress.Message = "nothing" }
	lacks := func(s *State) { s.BootstrapError = "There is no Secret." }
	for name, c := range map[string]struct {
		given        []func(*State)
		do           Action
		reason, says string
	}{
		"a create":                     {[]func(*State){notNeeded}, Create, none, "needs no bootstrap token."},
		"a create with a warning":      {[]func(*State){notNeeded, warned}, Create, none, "The kubelet is old."},
		"a VM that boots":              {[]func(*State){provisioned, notNeeded, joining}, Nothing, none, ""},
		"a later process":              {[]func(*State){provisioned, recorded}, RenewToken, none, ""},
		"what that has read":           {[]func(*State){provisioned, recorded, known, joining}, Nothing, none, ""},
		"a Node":                       {[]func(*State){provisioned, recorded, known, joined("False")}, Nothing, none, ""},
		"a create without its Secret":  {[]func(*State){notNeeded, intended, recorded, known, lacks}, Nothing, none, "There is no Secret."},
		"a token of an earlier create": {[]func(*State){provisioned, recorded, func(s *State) { s.Token = Token{Known: true, ReadAt: s.Now, RenewAt: s.Now.Add(time.Hour)} }}, Nothing, created, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(c.given...)
			step := Next(s)
			got := step.Status.Condition(clusterv1alpha1.ConditionBootstrapReady)
			if step.Do != c.do || got.Reason != c.reason || (got.Status == "True") == (s.BootstrapError != "") || !strings.HasSuffix(got.Message, c.says) {
				t.Errorf("does %q and says %+v", step.Do, got)
			}
		})
	}
}
