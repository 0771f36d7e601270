package mutant

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	specInvalid = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	conflict    = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT
	notFound    = driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND
	internal    = driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
)

func ofCreate() []Mutant {
	return []Mutant{
		{Name: "no-address", Check: "create/addresses", mutate: described(func(m *machine) { m.Addresses = nil })},
		{Name: "own-address-types", Check: "create/addresses", mutate: described(func(m *machine) { m.Addresses[0].Type = driverv1alpha1.AddressType_ADDRESS_TYPE_UNSPECIFIED })},
		{Name: "claiming-everything", Check: "create/happy", mutate: claimingEverything},
		{Name: "no-provider-id", Check: "create/happy", mutate: described(func(m *machine) { m.ProviderId = "" })},
		{Name: "no-state", Check: "create/happy", mutate: described(func(m *machine) { m.State = 0 })},
		{Name: "another-machine", Check: "create/happy", mutate: described(func(m *machine) { m.Ref.Namespace = "elsewhere" })},
		{Name: "another-prefix", Check: "create/happy", mutate: described(func(m *machine) { m.ProviderId = "oak" + m.GetProviderId() })},
		{Name: "wrong-provider-id", Check: "create/provider-id", mutate: described(func(m *machine) { m.ProviderId += "-x" })},
		{Name: "forgetful", Check: "create/again", mutate: renaming(func(seen int) bool { return seen > 0 })},
		{Name: "racing", Check: "create/concurrent", mutate: racing},
		{Name: "reviving", Check: "create/after-delete", mutate: reviving},
		{Name: "adopting-by-name", Check: "create/same-name", mutate: adoptingByName},
		{Name: "adopting-the-unmarked", Check: "create/unmarked", mutate: adoptingTheUnmarked},
		{Name: "blind-to-names", Check: "create/uid-of-another", mutate: blindToNames},
		{Name: "deleting-by-uid-alone", Check: "create/uid-of-another", mutate: byUIDAlone(func(r *driverv1alpha1.DeleteMachineRequest, ref *driverv1alpha1.MachineRef) { r.Machine = ref })},
		{Name: "telling-by-uid-alone", Check: "create/uid-of-another", mutate: byUIDAlone(func(r *driverv1alpha1.GetMachineStatusRequest, ref *driverv1alpha1.MachineRef) { r.Machine = ref })},
		{Name: "blind-to-specs", Check: "create/conflict", mutate: blindToSpecs},
		{Name: "comparing-secrets", Check: "create/not-compared", mutate: comparing(func(r *createReq) any { return r.GetProvider().GetSecrets() })},
		{Name: "comparing-tags", Check: "create/not-compared", mutate: comparing(func(r *createReq) any { return r.GetTags() })},
		{Name: "caching-credentials", Check: "create/secret-rotated", mutate: cachingCredentials},
		{Name: "leaving-another", Check: "create/marked", mutate: leavingAnother},
		{Name: "without-tags", Check: "create/tags", mutate: asked(func(r *createReq) { r.Tags = nil })},
		{Name: "cutting-names", Check: "create/long-name", mutate: described(func(m *machine) { m.Ref.Name = m.GetRef().GetName()[:min(63, len(m.GetRef().GetName()))] })},
	}
}

// claimingEverything announces each feature, and answers each call with nothing.
func claimingEverything(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		answer, err := next(ctx, method, request)
		if !strings.Contains(method, ".MachineService/") && !strings.Contains(method, ".ProviderSpecService/") {
			if a, ok := answer.(*capabilities); ok {
				a.Features = nil
				for _, i := range slices.Sorted(maps.Keys(driverv1alpha1.Feature_name))[1:] {
					a.Features = append(a.Features, driverv1alpha1.Feature(i))
				}
			}
			return answer, err
		}
		_, empty, err := messagesOf(method)
		return empty, err
	}
}

// under asks about a machine under another uid, and answers as if it had not.
func under(uid string, r interface {
	proto.Message
	GetMachine() *driverv1alpha1.MachineRef
}, next func(proto.Message) (proto.Message, error),
) (proto.Message, error) {
	ref := proto.CloneOf(r.GetMachine())
	r.GetMachine().Uid = uid
	answer, err := next(r)
	if m := machineOf(answer); err == nil && m != nil {
		m.Ref = ref
	}
	return answer, err
}

// renaming makes another VM for a uid whenever again says so of how often it was created.
func renaming(again func(seen int) bool) func(handler) handler {
	var mu sync.Mutex
	seen := map[string]int{}
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		mu.Lock()
		uid := r.GetMachine().GetUid()
		other := again(seen[uid])
		seen[uid]++
		mu.Unlock()
		if other {
			return under(uid+"-again", r, next)
		}
		return next(r)
	})
}

// racing looks whether there is a VM, and forgets that others do so, too.
func racing(next handler) handler {
	var mu sync.Mutex
	busy := map[string]bool{}
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		uid := r.GetMachine().GetUid()
		mu.Lock()
		too := busy[uid]
		busy[uid] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			delete(busy, uid)
		}()
		if too {
			return under(uid+"-too", r, next)
		}
		return next(r)
	})(next)
}

// leavingAnother makes something beside the VM that nothing says whose it is.
func leavingAnother(next handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		// Whatever it answers, more is there now.
		_, _ = under(r.GetMachine().GetUid()+"-beside", proto.CloneOf(r), next)
		return next(r)
	})(next)
}

// reviving makes a new VM for a uid that was deleted, and says that this never happens.
func reviving(next handler) handler {
	next = answered(func(a *capabilities) { a.Limits = &driverv1alpha1.Limits{CreateSettle: durationpb.New(0)} })(next)
	var deleted sync.Map
	remember := asked(func(r *deleteReq) { deleted.Store(r.GetMachine().GetUid(), true) })
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if _, gone := deleted.Load(r.GetMachine().GetUid()); gone {
			return under(r.GetMachine().GetUid()+"-revived", r, next)
		}
		return next(r)
	})(remember(next))
}

// adoptingByName takes a VM of the same name for the machine's.
func adoptingByName(next handler) handler {
	var uids sync.Map
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		first, _ := uids.LoadOrStore(r.GetMachine().GetName(), r.GetMachine().GetUid())
		return under(first.(string), r, next)
	})(next)
}

// blindToNames does not look whether a uid has come under another name.
func blindToNames(next handler) handler {
	var refs sync.Map
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		asked := proto.CloneOf(r.GetMachine())
		if asked == nil {
			return next(r)
		}
		first, _ := refs.LoadOrStore(asked.GetUid(), asked)
		r.Machine = proto.CloneOf(first.(*driverv1alpha1.MachineRef))
		answer, err := next(r)
		if m := machineOf(answer); err == nil && m != nil {
			m.Ref = asked
		}
		return answer, err
	})(next)
}

// byUIDAlone has requests of a type go to the VM of a uid, whatever the machine is called. rename
// gives a request the ref that the VM was made with.
func byUIDAlone[T interface {
	proto.Message
	GetMachine() *driverv1alpha1.MachineRef
}](rename func(T, *driverv1alpha1.MachineRef)) func(handler) handler {
	return func(next handler) handler {
		var refs sync.Map
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			if r, is := request.(*createReq); is {
				refs.LoadOrStore(r.GetMachine().GetUid(), proto.CloneOf(r.GetMachine()))
			}
			if r, is := request.(T); is {
				if made, known := refs.Load(r.GetMachine().GetUid()); known {
					rename(r, made.(*driverv1alpha1.MachineRef))
				}
			}
			return next(ctx, method, request)
		}
	}
}

// blindToSpecs does not look whether the VM is as the spec has it.
func blindToSpecs(next handler) handler {
	var specs sync.Map
	return asked(func(r *createReq) {
		if first, seen := specs.LoadOrStore(r.GetMachine().GetUid(), r.GetProvider().GetProviderSpec()); seen {
			r.Provider.ProviderSpec = first.([]byte)
		}
	})(next)
}

// cachingCredentials goes on with the first credentials that worked.
func cachingCredentials(next handler) handler {
	var first sync.Map
	return asked(func(r interface {
		proto.Message
		GetMachine() *driverv1alpha1.MachineRef
		GetProvider() *driverv1alpha1.ProviderContext
	},
	) {
		if secrets, seen := first.LoadOrStore(r.GetMachine().GetUid(), r.GetProvider().GetSecrets()); seen {
			r.GetProvider().Secrets = secrets.(map[string][]byte)
		}
	})(next)
}

// comparing refuses a create of which something is not as in the first.
func comparing(what func(*createReq) any) func(handler) handler {
	return func(next handler) handler {
		var first sync.Map
		return refused(func(r *createReq) error {
			if was, seen := first.LoadOrStore(r.GetMachine().GetUid(), what(r)); seen && !reflect.DeepEqual(was, what(r)) {
				return fail(conflict, "it was asked for otherwise")
			}
			return nil
		})(next)
	}
}

// adoptingTheUnmarked takes a VM that was made just before, and is nobody's, for the machine's. The
// fake cloud numbers what it makes: another VM shows where the numbers are.
func adoptingTheUnmarked(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		r, is := request.(*createReq)
		if !is || r.GetMachine() == nil {
			return next(ctx, method, request)
		}
		beside, err := next(ctx, method, &createReq{Meta: r.GetMeta(), Provider: r.GetProvider(), Machine: &driverv1alpha1.MachineRef{
			Namespace: r.GetMachine().GetNamespace(), Name: r.GetMachine().GetName() + "-beside", Uid: r.GetMachine().GetUid() + "-beside",
		}})
		if err != nil {
			return nil, err
		}
		id, number := machineOf(beside).GetProviderId(), 0
		at := strings.LastIndex(id, "-") + 1
		if _, err := fmt.Sscanf(id[at:], "%d", &number); err != nil {
			return nil, err
		}
		for before := range 4 {
			adopted, err := next(ctx, driverv1alpha1.MachineService_AdoptMachine_FullMethodName, &adoptReq{
				Meta: r.GetMeta(), Provider: r.GetProvider(), Machine: r.GetMachine(), ProviderId: fmt.Sprintf("%s%06d", id[:at], number-before-1),
			})
			if err == nil {
				return &driverv1alpha1.CreateMachineResponse{Machine: machineOf(adopted)}, nil
			}
		}
		return next(ctx, method, request)
	}
}
