package mutant

import (
	"sync"

	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func ofDeletes() []Mutant {
	return []Mutant{
		{Name: "leaving-all", Check: "delete/happy", mutate: deaf(func(*deleteReq) bool { return true })},
		{Name: "missing-the-second-time", Check: "delete/again", mutate: missingTheSecondTime},
		{Name: "missing-what-never-was", Check: "delete/never-created", mutate: missingWhatNeverWas},
		{Name: "deleting-by-provider-id", Check: "delete/by-uid", mutate: deaf(func(r *deleteReq) bool { return r.GetProviderId() == "" })},
		{Name: "waiting-for-the-boot", Check: "delete/while-creating", mutate: deafBefore()},
		{Name: "deleting-for-others", Check: "delete/foreign", mutate: blindToClusters},
		{Name: "deleting-whatever-is-named", Check: "delete/others", mutate: deletingWhateverIsNamed},
		{Name: "leaving-halves", Check: "delete/half-made", mutate: leavingHalves},
	}
}

// deaf does nothing about deletes of a kind, and says that nothing is left.
func deaf(to func(*deleteReq) bool) func(handler) handler {
	return instead(func(r *deleteReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if to(r) {
			return &driverv1alpha1.DeleteMachineResponse{}, nil
		}
		return next(r)
	})
}

// deafBefore takes a machine that was asked for only once for one that is not there yet.
func deafBefore() func(handler) handler {
	var creates sync.Map
	return func(next handler) handler {
		remember := asked(func(r *createReq) { creates.Store(r.GetMachine().GetUid(), true) })
		return deaf(func(r *deleteReq) bool {
			_, seen := creates.LoadAndDelete(r.GetMachine().GetUid())
			return seen
		})(remember(next))
	}
}

// missingTheSecondTime answers NOT_FOUND where nothing is left.
func missingTheSecondTime(next handler) handler {
	var deleted sync.Map
	return instead(func(r *deleteReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if _, gone := deleted.Load(r.GetMachine().GetUid()); gone {
			return nil, fail(notFound, "nothing is left")
		}
		answer, err := next(r)
		if err == nil && machineOf(answer) == nil {
			deleted.Store(r.GetMachine().GetUid(), true)
		}
		return answer, err
	})(next)
}

// missingWhatNeverWas answers NOT_FOUND for machines that it did not create.
func missingWhatNeverWas(next handler) handler {
	var created sync.Map
	remember := asked(func(r *createReq) { created.Store(r.GetMachine().GetUid(), true) })
	return refused(func(r *deleteReq) error {
		if _, known := created.Load(r.GetMachine().GetUid()); !known {
			return fail(notFound, "there was none")
		}
		return nil
	})(remember(next))
}

// deletingWhateverIsNamed deletes the machine whose provider_id is named, whoever's it is.
func deletingWhateverIsNamed(next handler) handler {
	var refs sync.Map
	remember := answered(func(a *driverv1alpha1.CreateMachineResponse) {
		refs.Store(a.GetMachine().GetProviderId(), proto.CloneOf(a.GetMachine().GetRef()))
	})
	return instead(func(r *deleteReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		mine := r.GetMachine()
		if ref, known := refs.Load(r.GetProviderId()); known {
			r.Machine = proto.CloneOf(ref.(*driverv1alpha1.MachineRef))
		}
		answer, err := next(r)
		if m := machineOf(answer); err == nil && m != nil {
			m.Ref = mine
		}
		return answer, err
	})(remember(next))
}

// leavingHalves deletes only machines of which it answered a VM.
func leavingHalves(next handler) handler {
	var whole sync.Map
	remember := answered(func(a *driverv1alpha1.CreateMachineResponse) { whole.Store(a.GetMachine().GetRef().GetUid(), true) })
	return deaf(func(r *deleteReq) bool {
		_, known := whole.Load(r.GetMachine().GetUid())
		return !known
	})(remember(next))
}
