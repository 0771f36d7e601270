package mutant

import (
	"context"
	"sync/atomic"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// asked changes each request of a type.
func asked[T proto.Message](change func(T)) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			if r, ok := request.(T); ok {
				change(r)
			}
			return next(ctx, method, request)
		}
	}
}

// answered changes each answer of a type.
func answered[T proto.Message](change func(T)) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			answer, err := next(ctx, method, request)
			if a, ok := answer.(T); ok && err == nil {
				change(a)
			}
			return answer, err
		}
	}
}

// counted changes each answer of a type by how many there were, this one included.
func counted[T proto.Message](change func(answer T, n int64)) func(handler) handler {
	return func(next handler) handler {
		var calls atomic.Int64
		return answered(func(a T) { change(a, calls.Add(1)) })(next)
	}
}

// refused answers requests of a type with the error that refuse returns, if it returns one.
func refused[T proto.Message](refuse func(T) error) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			if r, ok := request.(T); ok {
				if err := refuse(r); err != nil {
					return nil, err
				}
			}
			return next(ctx, method, request)
		}
	}
}

// failed changes each error.
func failed(change func(*status.Status) error) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			answer, err := next(ctx, method, request)
			if err != nil {
				return nil, change(status.Convert(err))
			}
			return answer, nil
		}
	}
}

// instead answers requests of a type itself, where it returns an answer.
func instead[T proto.Message](answer func(T, func(proto.Message) (proto.Message, error)) (proto.Message, error)) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
			if r, ok := request.(T); ok {
				return answer(r, func(m proto.Message) (proto.Message, error) { return next(ctx, method, m) })
			}
			return next(ctx, method, request)
		}
	}
}

// fail returns an error of the fake driver.
func fail(reason driverv1alpha1.ErrorReason, message string) error {
	code, _ := contract.Code(reason) // the contract's own reasons have one
	s, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{Domain: "fake", Reason: contract.ReasonName(reason)})
	if err != nil {
		return err
	}
	return s.Err()
}

// as turns errors of one reason into those of another.
func as(from, to driverv1alpha1.ErrorReason) func(handler) handler {
	return failed(func(s *status.Status) error {
		if contract.ErrorInfo(s).GetReason() == contract.ReasonName(from) {
			return fail(to, s.Message())
		}
		return s.Err()
	})
}

// machineOf is the machine in an answer; nil when there is none.
func machineOf(answer proto.Message) *driverv1alpha1.Machine {
	if a, ok := answer.(interface {
		GetMachine() *driverv1alpha1.Machine
	}); ok {
		return a.GetMachine()
	}
	return nil
}

// described changes the machine in each answer, those of lists included.
func described(change func(*driverv1alpha1.Machine)) func(handler) handler {
	return answered(func(answer proto.Message) {
		if m := machineOf(answer); m != nil {
			change(m)
		}
		if list, ok := answer.(*driverv1alpha1.ListMachinesResponse); ok {
			for _, m := range list.GetMachines() {
				change(m)
			}
		}
	})
}
