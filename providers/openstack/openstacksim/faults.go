package openstacksim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// allEffects are those that the cloud in memory supports.
var allEffects = []backendv1alpha1.FaultEffect{
	backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS,
	backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE,
}

// fault is a fault in force, or one that is used up and still holds calls.
type fault struct {
	*backendv1alpha1.Fault
	dice    *rand.Rand
	skipped int32
	struck  int32
	// seq is that of the last resource that was there when the fault came.
	seq     int64
	removed chan struct{}
	// refused are the calls that were refused for their credentials, and the token with which they came: clients log in
	// again and repeat the call, and that does not use up the fault a second time.
	refused map[string]string
}

// faults are those of a cloud, in the order of their injection.
type faults struct {
	count int
	all   []*fault
	// effects are those that there can be.
	effects []backendv1alpha1.FaultEffect
	// dice draw the latency of every call.
	dice *rand.Rand
}

// inject takes in a copy of f and returns its id. seq is that of the last resource.
func (fs *faults) inject(f *backendv1alpha1.Fault, seq int64) (string, error) {
	if err := fs.check(f); err != nil {
		return "", status.Error(codes.InvalidArgument, err.Error())
	}
	fs.count++
	one := &fault{Fault: proto.CloneOf(f), seq: seq, removed: make(chan struct{}), refused: map[string]string{}}
	one.Id = fmt.Sprintf("fault-%d", fs.count)
	one.dice = rand.New(rand.NewPCG(uint64(f.GetSeed()), uint64(len("fault"))))
	if one.GetPoint() == backendv1alpha1.FaultPoint_FAULT_POINT_UNSPECIFIED {
		one.Point = backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT
	}
	fs.all = append(fs.all, one)
	return one.GetId(), nil
}

func (fs *faults) check(f *backendv1alpha1.Fault) error {
	switch {
	case !slices.Contains(fs.effects, f.GetEffect()):
		return fmt.Errorf("fault.effect: %v is not supported", f.GetEffect())
	case f.GetMatch().GetOperation() != "" && !isOperation(f.GetMatch().GetOperation()):
		return fmt.Errorf("fault.match.operation: no operation is called %q; there are %q", f.GetMatch().GetOperation(), operationNames())
	case f.GetProbability() < 0 || f.GetProbability() > 1:
		return fmt.Errorf("fault.probability: %v is not between 0 and 1", f.GetProbability())
	case f.GetTimes() < 0 || f.GetSkip() < 0:
		return fmt.Errorf("fault.times, fault.skip: must not be negative")
	case f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY && f.GetLatency().GetMin().AsDuration() < 0:
		return fmt.Errorf("fault.latency.min: must not be negative")
	case f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR && f.GetError().GetName() == backendv1alpha1.NamedError_NAMED_ERROR_UNSPECIFIED:
		return fmt.Errorf("fault.error.name: must be set")
	case f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR && backendv1alpha1.NamedError_name[int32(f.GetError().GetName())] == "":
		return fmt.Errorf("fault.error.name: %v is not supported", f.GetError().GetName())
	}
	return nil
}

// choose returns the faults that strike this call, and uses them up by one.
func (fs *faults) choose(t *turn) []*fault {
	var chosen []*fault
	for _, f := range fs.all {
		if f.matches(t) && (f.repeated(t) || f.strikes()) {
			f.remember(t)
			chosen = append(chosen, f)
		}
	}
	fs.tidy()
	return chosen
}

func (f *fault) matches(t *turn) bool {
	m := f.GetMatch()
	if f.forServer() && t.route.operation != opCreateServer || f.forCreation() && !t.route.creates {
		return false
	}
	return matches(m.GetOperation(), t.Operation) && t.Subjects.names(m.GetClusterUid(), m.GetMachineUid())
}

// repeated says whether the call is the one that the fault refused for its credentials, with others.
func (f *fault) repeated(t *turn) bool {
	before, refused := f.refused[t.fingerprint()]
	return refused && before != t.token()
}

// remember notes whom the fault refuses for its credentials, once.
func (f *fault) remember(t *turn) {
	if f.GetEffect() != backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR || f.GetError().GetName() != backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS {
		return
	}
	if f.repeated(t) {
		delete(f.refused, t.fingerprint())
		return
	}
	f.refused[t.fingerprint()] = t.token()
}

// strikes counts a matching call and says whether the fault strikes it.
func (f *fault) strikes() bool {
	if f.usedUp() {
		return false
	}
	if f.skipped < f.GetSkip() {
		f.skipped++
		return false
	}
	if p := f.GetProbability(); p > 0 && f.dice.Float64() >= p {
		return false
	}
	f.struck++
	return true
}

// forServer says whether the fault is about what becomes of a new server.
func (f *fault) forServer() bool {
	return f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS ||
		f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS
}

// forCreation says whether the error is one that only the creation of something can meet.
func (f *fault) forCreation() bool {
	if f.GetEffect() != backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR {
		return false
	}
	switch f.GetError().GetName() {
	case backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY,
		backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY:
		return true
	}
	return false
}

// forList says whether the fault is about what a list holds.
func (f *fault) forList() bool {
	return f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE
}

func (f *fault) usedUp() bool { return f.GetTimes() > 0 && f.struck >= f.GetTimes() }

// waits says whether somebody may still come back to the fault when it is used up: a call that it holds, or one that will be repeated.
func (f *fault) waits() bool {
	switch f.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG:
		return true
	}
	return len(f.refused) > 0
}

// latency draws how long the call takes longer.
func (f *fault) latency() time.Duration {
	return draw(f.dice, f.GetLatency().GetMin().AsDuration(), f.GetLatency().GetMax().AsDuration())
}

// draw returns something evenly between from and to, from when to is not above it.
func draw(dice *rand.Rand, from, to time.Duration) time.Duration {
	if to <= from {
		return from
	}
	return from + time.Duration(dice.Int64N(int64(to-from)+1))
}

// list returns copies of the faults in force.
func (fs *faults) list() []*backendv1alpha1.Fault {
	listed := make([]*backendv1alpha1.Fault, 0, len(fs.all))
	for _, f := range fs.all {
		listed = append(listed, proto.CloneOf(f.Fault))
	}
	return listed
}

// remove takes the faults of these ids away, all when there are none, and lets go what they hold.
func (fs *faults) remove(ids []string) {
	fs.all = slices.DeleteFunc(fs.all, func(f *fault) bool {
		if len(ids) > 0 && !slices.Contains(ids, f.GetId()) {
			return false
		}
		close(f.removed)
		return true
	})
}

// tidy drops the faults that are used up and hold nobody.
func (fs *faults) tidy() {
	fs.all = slices.DeleteFunc(fs.all, func(f *fault) bool { return f.usedUp() && !f.waits() })
}
