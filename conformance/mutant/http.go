package mutant

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func ofHTTP() []Mutant {
	return []Mutant{
		{Name: "another-after-silence", Check: "http/lost-answer", Proxy: true, mutate: retryingUnderANewKey},
		{Name: "gone-in-silence", Check: "http/failing", Proxy: true, mutate: as(driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, notFound)},
		{Name: "careless-in-later-calls", Check: "http/failing", Proxy: true, mutate: carelessLater},
		{Name: "empty-when-cut", Check: "http/truncated", Proxy: true, mutate: emptyOnFailure},
		{Name: "another-when-cut", Check: "http/truncated", Proxy: true, mutate: retryingUnderANewKey},
		{Name: "resending-itself", Check: "http/no-retry", Proxy: true, mutate: retryingItself},
	}
}

// carelessLater takes a delete for done whose second call, or a later one, has failed.
func carelessLater(next handler) handler {
	var going, done sync.Map
	return instead(func(r *deleteReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		uid := r.GetMachine().GetUid()
		if _, is := done.Load(uid); is {
			return &driverv1alpha1.DeleteMachineResponse{}, nil
		}
		answer, err := next(r)
		if _, later := going.Load(uid); later && err != nil {
			done.Store(uid, true)
			return &driverv1alpha1.DeleteMachineResponse{}, nil //nolint:nilerr // that is the mutation
		}
		if m := machineOf(answer); err == nil && m != nil {
			going.Store(uid, true)
			m.Operation = &driverv1alpha1.MachineOperation{PollAfter: durationpb.New(20 * time.Millisecond)}
		}
		return answer, err
	})(next)
}
