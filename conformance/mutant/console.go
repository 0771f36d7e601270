package mutant

import (
	"sync"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

type (
	consoleReq    = driverv1alpha1.GetConsoleOutputRequest
	consoleAnswer = driverv1alpha1.GetConsoleOutputResponse
)

func ofConsoles() []Mutant {
	return []Mutant{
		{Name: "console-by-provider-id", Check: "console/by-uid", mutate: refused(func(r *consoleReq) error {
			if r.GetProviderId() == "" {
				return fail(notFound, "no provider_id")
			}
			return nil
		})},
		{Name: "console-of-nobody", Check: "console/missing", mutate: consoleOfNobody},
		{Name: "console-that-is-too-long", Check: "console/newest", mutate: answered(func(a *consoleAnswer) {
			a.Output = append(make([]byte, contract.MaxConsoleBytes), a.GetOutput()...)
		})},
		{Name: "console-from-its-beginning", Check: "console/newest", mutate: answered(func(a *consoleAnswer) {
			a.Output = a.GetOutput()[:len(a.GetOutput())/2]
		})},
		{Name: "console-of-another", Check: "console/newest", mutate: consoleOfAnother},
	}
}

// consoleOfNobody takes a VM that is not there for one that has printed nothing.
func consoleOfNobody(next handler) handler {
	return instead(func(r *consoleReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if contract.ErrorInfo(status.Convert(err)).GetReason() == contract.ReasonName(notFound) {
			return &consoleAnswer{}, nil
		}
		return answer, err
	})(next)
}

// consoleOfAnother answers for each machine what it has read first of any.
func consoleOfAnother(next handler) handler {
	var mu sync.Mutex
	var first proto.Message
	return instead(func(r *consoleReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		if first != nil {
			return first, nil
		}
		answer, err := next(r)
		if err == nil {
			first = answer
		}
		return answer, err
	})(next)
}
