package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// remembered is the memory after outcomes, a second apart.
func remembered(outcomes ...instance.Outcome) Memory {
	var m Memory
	for n, o := range outcomes {
		o.Ended = epoch.Add(time.Duration(n) * time.Second)
		m = m.withOutcome(o, "uid")
	}
	return m
}

func failed(op instance.Operation, class instance.Class) instance.Outcome {
	return instance.Outcome{Operation: op, Failure: &instance.Failure{Class: class}}
}

// TestRemember: what a row of outcomes leaves.
func TestRemember(t *testing.T) {
	type memory struct {
		failures, deletes int
		possible, refused bool
		doubt             int // which outcome; 0 for none
	}
	some := &instance.Instance{State: instance.Deleting}
	accepted, left := instance.Outcome{Operation: instance.Delete, Instance: some}, instance.Outcome{Operation: instance.Delete}
	for name, c := range map[string]struct {
		outcomes []instance.Outcome
		want     memory
	}{
		"a create":                             {[]instance.Outcome{{Operation: instance.Create, Instance: some}}, memory{possible: true}},
		"a delete that left nothing":           {[]instance.Outcome{left}, memory{}},
		"a delete that left something":         {[]instance.Outcome{accepted}, memory{deletes: 1}},
		"three of them":                        {[]instance.Outcome{accepted, accepted, accepted}, memory{deletes: 3}},
		"one after one that left nothing":      {[]instance.Outcome{accepted, left, accepted}, memory{deletes: 1}},
		"a create after them":                  {[]instance.Outcome{accepted, {Operation: instance.Create, Instance: some}}, memory{possible: true}},
		"a failure":                            {[]instance.Outcome{failed(instance.Create, instance.Quota)}, memory{failures: 1}},
		"the same again":                       {[]instance.Outcome{failed(instance.Create, instance.Quota), failed(instance.Create, instance.Quota)}, memory{failures: 2}},
		"another":                              {[]instance.Outcome{failed(instance.Create, instance.Quota), failed(instance.Create, instance.Quota), failed(instance.Create, instance.Capacity)}, memory{failures: 1}},
		"a success between":                    {[]instance.Outcome{failed(instance.Delete, instance.Quota), left, failed(instance.Delete, instance.Quota)}, memory{failures: 1}},
		"a create whose outcome is unknown":    {[]instance.Outcome{failed(instance.Create, instance.Quota), failed(instance.Create, instance.OutcomeUnknown)}, memory{failures: 1, possible: true, doubt: 2}},
		"a delete whose outcome is unknown":    {[]instance.Outcome{failed(instance.Delete, instance.OutcomeUnknown)}, memory{failures: 1}},
		"a create refused for good":            {[]instance.Outcome{failed(instance.Create, instance.SpecInvalid)}, memory{failures: 1, refused: true}},
		"one after one of unknown outcome":     {[]instance.Outcome{failed(instance.Create, instance.OutcomeUnknown), failed(instance.Create, instance.SpecInvalid)}, memory{failures: 1, possible: true, doubt: 1}},
		"a delete refused after such a create": {[]instance.Outcome{failed(instance.Create, instance.SpecInvalid), failed(instance.Delete, instance.SpecInvalid)}, memory{failures: 2, refused: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := remembered(c.outcomes...)
			got := memory{failures: m.Failures, deletes: m.Deletes, possible: m.MaybeCreated, refused: m.Refused}
			if !m.UncertainAt.IsZero() {
				got.doubt = int(m.UncertainAt.Sub(epoch)/time.Second) + 1
			}
			if got != c.want {
				t.Errorf("remembers %+v, want %+v", got, c.want)
			}
		})
	}
	again := remembered(failed(instance.Create, instance.Quota), failed(instance.Create, instance.Quota))
	if wait := again.RetryAt.Sub(again.Last.Ended); wait < 8*time.Second || wait > 10*time.Second {
		t.Errorf("the second failure pauses for %s", wait)
	}
}

// TestLeftover: what is taken for the rest of a create that died half-way.
func TestLeftover(t *testing.T) {
	for name, c := range map[string]struct {
		state      instance.State
		providerID string
		want       bool
	}{
		"failed without a VM":     {instance.Failed, "", true},
		"failed with one":         {instance.Failed, "cloud:///1", false},
		"asked for, not yet a VM": {instance.Creating, "", false},
		"running":                 {instance.Running, "cloud:///1", false},
	} {
		v := view{instance: &instance.Instance{State: c.state, ProviderID: c.providerID}}
		if got := v.isLeftover(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestSettledAt: when nothing can come any more of creates whose end nobody saw.
func TestSettledAt(t *testing.T) {
	leading := epoch.Add(time.Minute)
	operation := func(op clusterv1alpha1.OperationType, state clusterv1alpha1.OperationState, at time.Time) *clusterv1alpha1.LastOperation {
		return &clusterv1alpha1.LastOperation{Type: op, State: state, LastUpdateTime: metav1.NewTime(at)}
	}
	for name, c := range map[string]struct {
		last  *clusterv1alpha1.LastOperation
		doubt time.Time
		want  time.Time
	}{
		"nothing was asked":                        {},
		"a delete":                                 {last: operation(opDelete, "Processing", epoch)},
		"a create without an end":                  {last: operation(opCreate, "Processing", epoch), want: leading.Add(settle)},
		"one that failed":                          {last: operation(opCreate, "Failed", epoch), want: leading.Add(settle)},
		"one that an earlier process saw end":      {last: operation(opCreate, "Succeeded", epoch), want: epoch.Add(settle)},
		"one that ended as this process took over": {last: operation(opCreate, "Succeeded", leading), want: leading.Add(settle)},
		"one that this process saw end":            {last: operation(opCreate, "Succeeded", leading.Add(1))},
		"a doubt of this process":                  {doubt: leading.Add(time.Second), want: leading.Add(time.Second + settle)},
		"a doubt of this process, and an earlier": {
			last: operation(opCreate, "Processing", epoch), doubt: leading.Add(time.Second), want: leading.Add(time.Second + settle),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(func(s *State) {
				s.Driver.LeadingSince, s.Machine.Status.LastOperation, s.Memory.UncertainAt = leading, c.last, c.doubt
			})
			if got := settledAt(s); !got.Equal(c.want) {
				t.Errorf("settles by %s, want %s", got, c.want)
			}
		})
	}
}

// TestLostStateIsWaitedFor: what a driver says that has lost what it knew holds until it shows a
// VM.
func TestLostStateIsWaitedFor(t *testing.T) {
	wrote := func(s *State) {
		s.Machine.Status = s.Machine.Status.set(metav1.Condition{Type: "InstanceReady", Status: "False", Reason: "DataLoss", Message: "lost"}, *s)
	}
	said := func(s *State) {
		s.Memory.Last = &instance.Outcome{Operation: instance.Delete, Ended: s.Now, Failure: &instance.Failure{Class: instance.DataLoss, Reason: "X"}}
	}
	vm := seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})
	for name, c := range map[string]struct {
		given func(*State)
		want  bool
	}{
		"nothing was lost":                    {all(provisioned, vm), false},
		"nobody has looked since":             {all(provisioned, wrote, notPolledYet), true},
		"a look found nothing":                {all(provisioned, wrote, missing(missesUntilGone)), true},
		"a look found the VM":                 {all(provisioned, wrote, vm), false},
		"a look found it, and the next fails": {all(provisioned, wrote, vm, refusedLook(instance.Internal, true)), true},
		"a call has just been told so":        {all(provisioned, said, notPolledYet), true},
		"a look after it found the VM":        {all(provisioned, said, vm), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := awaitLostState(given(c.given), decision{}); got != c.want {
				t.Errorf("waits: %t, want %t", got, c.want)
			}
		})
	}
}

// TestAnIDIsContradictedByAnotherOne: one that is not written down, or that the VM has, is not.
func TestAnIDIsContradictedByAnotherOne(t *testing.T) {
	vm := instance.Instance{ProviderID: "cloud:///1", ProviderIDAliases: []string{"cloud:///alias"}, State: instance.Running}
	for id, want := range map[string]string{"": "", "cloud:///1": "", "cloud:///alias": "", "cloud:///2": "cloud:///2"} {
		s := given(seen(vm), func(s *State) { s.Machine.ProviderID = id })
		if got := rememberProviderID(s).Contradicted; got != want {
			t.Errorf("spec.providerID %q: contradicted %q, want %q", id, got, want)
		}
	}
}

// TestSilenceIsKeptWhereNobodyCanTell: without a VM, or without its Lease, nothing new is known.
func TestSilenceIsKeptWhereNobodyCanTell(t *testing.T) {
	before := &Silence{Since: time.Minute, RenewTime: epoch}
	for name, c := range map[string]struct {
		changes []func(*State)
		drain   Drain
		kept    bool
	}{
		"the VM is gone":                 {[]func(*State){missing(2)}, Drain{Silent: true, RenewTime: epoch.Add(time.Hour)}, true},
		"the Lease cannot be read":       {nil, Drain{Silent: true, LeaseError: "forbidden"}, true},
		"the Lease was renewed":          {nil, Drain{Silent: true, RenewTime: epoch.Add(time.Hour)}, false},
		"the Lease says what it said":    {nil, Drain{Silent: true, RenewTime: epoch}, true},
		"the Node reports":               {nil, Drain{}, false},
		"the pass could not find it out": {nil, Drain{Error: "timeout"}, true},
	} {
		s := given(append([]func(*State){running}, c.changes...)...)
		s.Memory.Silence, s.Drain = before, &c.drain
		if got := rememberSilence(s); (got == before) != c.kept {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
