package testcloud

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

// The points of a call at which faults strike.
const (
	BeforeEffect = backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT
	AfterEffect  = backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
)

// AllEffects are those of the hooks' version.
func AllEffects() []backendv1alpha1.FaultEffect {
	return []backendv1alpha1.FaultEffect{
		backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS,
		backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE,
	}
}

// Arrival is what a call is like when it comes: what faults match it by.
type Arrival struct {
	Operation string
	// Clusters and Machines are the uids that the call names, Resource is the id.
	Clusters, Machines []string
	Resource           string
	// CreatesVM says that it would make a VM, Creates that it would make anything.
	CreatesVM, Creates bool
	// Request is the same for a call that is repeated, and Token tells credentials apart: clients
	// that are refused for these log in again and repeat the call, and that does not use up a fault
	// a second time. Empty where clients do not.
	Request, Token string
}

// Fault is a fault in force, or one that is used up and still holds calls.
type Fault struct {
	*backendv1alpha1.Fault
	dice    *rand.Rand
	skipped int32
	struck  int32
	// since is the number of the last resource that was there when the fault came.
	since   int64
	removed chan struct{}
	// refused are the requests that were refused for their credentials, and the token with which
	// they came.
	refused map[string]string
}

// faults are those of a cloud, in the order of their injection.
type faults struct {
	effects    []backendv1alpha1.FaultEffect
	operations []string
	aliases    func(uid string) []string
	count      int
	all        []*Fault
}

// inject takes in a copy of f and returns its id. since is the number of the last resource.
func (fs *faults) inject(f *backendv1alpha1.Fault, since int64) (string, error) {
	if err := fs.check(f); err != nil {
		return "", status.Error(codes.InvalidArgument, err.Error())
	}
	fs.count++
	one := &Fault{Fault: proto.CloneOf(f), since: since, removed: make(chan struct{}), refused: map[string]string{}}
	one.Id = fmt.Sprintf("fault-%d", fs.count)
	one.dice = rand.New(rand.NewPCG(uint64(f.GetSeed()), uint64(len("fault"))))
	if one.GetPoint() == backendv1alpha1.FaultPoint_FAULT_POINT_UNSPECIFIED {
		one.Point = BeforeEffect
	}
	fs.all = append(fs.all, one)
	return one.GetId(), nil
}

func (fs *faults) check(f *backendv1alpha1.Fault) error {
	operation, name := f.GetMatch().GetOperation(), f.GetError().GetName()
	ofError := f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR
	switch {
	case !slices.Contains(fs.effects, f.GetEffect()):
		return fmt.Errorf("fault.effect: %v is not supported", f.GetEffect())
	case operation != "" && !slices.Contains(fs.operations, operation):
		return fmt.Errorf("fault.match.operation: no operation is called %q; there are %q", operation, fs.operations)
	case f.GetProbability() < 0 || f.GetProbability() > 1:
		return fmt.Errorf("fault.probability: %v is not between 0 and 1", f.GetProbability())
	case f.GetTimes() < 0 || f.GetSkip() < 0:
		return fmt.Errorf("fault.times, fault.skip: must not be negative")
	case f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY && f.GetLatency().GetMin().AsDuration() < 0:
		return fmt.Errorf("fault.latency.min: must not be negative")
	case ofError && name == backendv1alpha1.NamedError_NAMED_ERROR_UNSPECIFIED:
		return fmt.Errorf("fault.error.name: must be set")
	case ofError && backendv1alpha1.NamedError_name[int32(name)] == "":
		return fmt.Errorf("fault.error.name: %v is not supported", name)
	}
	return nil
}

// choose returns the faults that strike this call, and uses them up by one.
func (fs *faults) choose(a Arrival) []*Fault {
	var chosen []*Fault
	for _, f := range fs.all {
		if f.matches(a, fs.aliases) && (f.repeated(a) || f.strikes()) {
			f.remember(a)
			chosen = append(chosen, f)
		}
	}
	fs.tidy()
	return chosen
}

func (f *Fault) matches(a Arrival, aliases func(string) []string) bool {
	m := f.GetMatch()
	if f.ForVM() && !a.CreatesVM || f.forCreation() && !a.Creates {
		return false
	}
	return Matches(m.GetOperation(), a.Operation) &&
		named(a.Clusters, m.GetClusterUid(), aliases) && named(a.Machines, m.GetMachineUid(), aliases)
}

// named says whether a uid is among those that a call names, as itself or by an alias; an empty one
// always is.
func named(all []string, uid string, aliases func(string) []string) bool {
	if uid == "" || slices.Contains(all, uid) {
		return true
	}
	return aliases != nil && slices.ContainsFunc(aliases(uid), func(alias string) bool { return slices.Contains(all, alias) })
}

// Matches says whether got is what is wanted; an empty wish is for anything.
func Matches(wanted, got string) bool { return wanted == "" || wanted == got }

// repeated says whether the call is the one that the fault refused for its credentials, with
// others.
func (f *Fault) repeated(a Arrival) bool {
	before, refused := f.refused[a.Request]
	return refused && before != a.Token
}

// remember notes whom the fault refuses for its credentials, once.
func (f *Fault) remember(a Arrival) {
	if f.GetEffect() != backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR || f.GetError().GetName() != backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS {
		return
	}
	switch {
	case a.Request == "":
	case f.repeated(a):
		delete(f.refused, a.Request)
	default:
		f.refused[a.Request] = a.Token
	}
}

// strikes counts a matching call and says whether the fault strikes it.
func (f *Fault) strikes() bool {
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

// ForVM says whether the fault is about what becomes of a new VM: that is the cloud's to heed.
func (f *Fault) ForVM() bool {
	return f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS ||
		f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS
}

// forCreation says whether the error is one that only the creation of something can meet.
func (f *Fault) forCreation() bool {
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
func (f *Fault) forList() bool {
	return f.GetEffect() == backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE
}

func (f *Fault) usedUp() bool { return f.GetTimes() > 0 && f.struck >= f.GetTimes() }

// waits says whether somebody may still come back to the fault when it is used up: a call that it
// holds, or one that will be repeated.
func (f *Fault) waits() bool {
	switch f.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG:
		return true
	}
	return len(f.refused) > 0
}

// at is where in a call the fault strikes.
func (f *Fault) at() backendv1alpha1.FaultPoint {
	switch f.GetEffect() {
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG:
		return BeforeEffect
	case backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST:
		return AfterEffect
	default:
		return f.GetPoint()
	}
}

// latency draws how long the call takes longer.
func (f *Fault) latency() time.Duration {
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
	fs.all = slices.DeleteFunc(fs.all, func(f *Fault) bool {
		if len(ids) > 0 && !slices.Contains(ids, f.GetId()) {
			return false
		}
		close(f.removed)
		return true
	})
}

// tidy drops the faults that are used up and hold nobody.
func (fs *faults) tidy() {
	fs.all = slices.DeleteFunc(fs.all, func(f *Fault) bool { return f.usedUp() && !f.waits() })
}
