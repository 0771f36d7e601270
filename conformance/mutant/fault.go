package mutant

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func ofFaults() []Mutant {
	return []Mutant{
		{Name: "naming-by-process", Check: "fault/killed-create", Launch: true, mutate: namingByProcess},
		{Name: "deleting-from-memory", Check: "fault/killed-delete", Launch: true, mutate: deletingFromMemory},
		{Name: "retrying-under-a-new-key", Check: "fault/lost-answer", mutate: retryingUnderANewKey},
		{Name: "deleting-what-it-answered", Check: "fault/failed-half-way", mutate: deletingWhatItAnswered},
		{Name: "handing-over-too-much", Check: "fault/failed-half-way", mutate: failed(func(s *status.Status) error {
			with, err := s.WithDetails(&driverv1alpha1.PartialState{LastKnownState: make([]byte, contract.MaxPartialStateBytes+1)})
			if err != nil {
				return err
			}
			return with.Err()
		})},
		{Name: "forgetting-the-account", Check: "fault/account-changed", mutate: withoutPartialState},
		{Name: "obstinate-when-cancelled", Check: "fault/cancelled", mutate: obstinate},
		{Name: "obstinate-after-its-time", Check: "fault/deadline", mutate: obstinate},
		{Name: "dying-at-once", Check: "fault/sigterm", Launch: true, mutate: unchanged},
		{Name: "ignoring-sigterm", Check: "fault/sigterm", Launch: true, mutate: ignoringSIGTERM},
		{Name: "promising-too-much", Check: "fault/settle", mutate: answered(func(a *capabilities) {
			a.Limits = &driverv1alpha1.Limits{CreateSettle: durationpb.New(0), Deadlines: a.GetLimits().GetDeadlines()}
		})},
		{Name: "late-to-show", Check: "fault/settle-is-true", mutate: lateToShow},
		{Name: "retrying-itself", Check: "fault/no-retry", mutate: retryingItself},
		{Name: "mixing-machines", Check: "fault/concurrent", mutate: mixing},
		{Name: "one-at-a-time", Check: "fault/probe-under-load", mutate: oneAtATime},
		{Name: "taking-small-messages", Check: "fault/huge-message", mutate: refused(func(r *createReq) error {
			if proto.Size(r) > contract.MaxMessageBytes/2 {
				return status.Error(codes.ResourceExhausted, "the message is too large")
			}
			return nil
		})},
		{Name: "swallowing-anything", Check: "fault/huge-message", mutate: swallowing},
		{Name: "believing-the-list", Check: "fault/stale-create", mutate: believingTheList},
		{Name: "listing-by-vms-alone", Check: "fault/stale-list", mutate: answered(func(a *page) {
			a.Machines = slices.DeleteFunc(a.GetMachines(), func(m *machine) bool {
				return m.GetProviderId() == "" && m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_CREATING
			})
		})},
		{Name: "hoarding", Check: "fault/leak", Launch: true, mutate: hoarding},
	}
}

// unchanged is a driver whose process or endpoint alone behaves badly. Mutants that are processes
// do not wait for calls when they get SIGTERM, and need no handshake of core's.
func unchanged(next handler) handler { return next }

// ignoringSIGTERM does not end when it is asked to.
func ignoringSIGTERM(next handler) handler {
	signal.Ignore(syscall.SIGTERM)
	return next
}

// namingByProcess derives what it makes from its own process, so that the next one does not find
// it.
func namingByProcess(next handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		return under(r.GetMachine().GetUid()+"-"+strconv.Itoa(os.Getpid()), r, next)
	})(next)
}

// deletingFromMemory deletes only what this process has made.
func deletingFromMemory(next handler) handler {
	var made sync.Map
	remember := asked(func(r *createReq) { made.Store(r.GetMachine().GetUid(), true) })
	return instead(func(r *deleteReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if _, known := made.Load(r.GetMachine().GetUid()); !known {
			return &driverv1alpha1.DeleteMachineResponse{}, nil
		}
		return next(r)
	})(remember(next))
}

// retryingUnderANewKey makes another VM after a create that failed.
func retryingUnderANewKey(next handler) handler {
	var failed sync.Map
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		uid := r.GetMachine().GetUid()
		if _, before := failed.Load(uid); before {
			return under(uid+"-again", r, next)
		}
		answer, err := next(r)
		if err != nil {
			failed.Store(uid, true)
		}
		return answer, err
	})(next)
}

// deletingWhatItAnswered takes a machine whose create failed for one that is not there.
func deletingWhatItAnswered(next handler) handler {
	var answered sync.Map
	create := instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if err == nil {
			answered.Store(r.GetMachine().GetUid(), true)
		}
		return answer, err
	})
	return instead(func(r *deleteReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if _, known := answered.Load(r.GetMachine().GetUid()); !known {
			return &driverv1alpha1.DeleteMachineResponse{}, nil
		}
		return next(r)
	})(create(next))
}

// withoutPartialState keeps to itself in which account a create has failed half-way.
func withoutPartialState(next handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if err == nil {
			return answer, nil
		}
		s := status.Convert(err).Proto()
		s.Details = slices.DeleteFunc(s.GetDetails(), func(detail *anypb.Any) bool {
			return detail.MessageIs((*driverv1alpha1.PartialState)(nil))
		})
		return nil, status.FromProto(s).Err()
	})(next)
}

// obstinate goes on whatever its caller wants.
func obstinate(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		return next(context.WithoutCancel(ctx), method, request)
	}
}

// lateToShow shows nothing for eight seconds after it was first asked, and promises that nothing
// comes late.
func lateToShow(next handler) handler {
	next = answered(func(a *capabilities) { a.Limits = &driverv1alpha1.Limits{CreateSettle: durationpb.New(0)} })(next)
	var first sync.Map
	return instead(func(r *getReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		asked, _ := first.LoadOrStore(r.GetMachine().GetUid(), time.Now())
		if time.Since(asked.(time.Time)) < 8*time.Second {
			return nil, fail(notFound, "nothing yet")
		}
		return next(r)
	})(next)
}

// retryingItself tries again at once what the cloud has refused.
func retryingItself(next handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		for range 2 {
			if err == nil {
				break
			}
			answer, err = next(r)
		}
		return answer, err
	})(next)
}

// mixing keeps what it was asked for where all calls see it.
func mixing(next handler) handler {
	var mu sync.Mutex
	var current []byte
	return asked(func(r *createReq) {
		mu.Lock()
		current = r.GetUserData()
		mu.Unlock()
		<-time.After(time.Millisecond)
		mu.Lock()
		r.UserData = current
		mu.Unlock()
	})(next)
}

// oneAtATime answers no call while another is under way.
func oneAtATime(next handler) handler {
	var mu sync.Mutex
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		return next(ctx, method, request)
	}
}

// swallowing takes messages of any size.
func swallowing(next handler) handler {
	return instead(func(r *createReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if proto.Size(r) > contract.MaxMessageBytes {
			r.Tags = nil
		}
		return next(r)
	})(next)
}

// hoarding opens a file for each call, and does not close it.
func hoarding(next handler) handler {
	var mu sync.Mutex
	var open []*os.File
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		if file, err := os.Open(os.DevNull); err == nil {
			mu.Lock()
			open = append(open, file)
			mu.Unlock()
		}
		return next(ctx, method, request)
	}
}

// believingTheList makes a VM where the cloud shows none, whatever else there is of the machine.
func believingTheList(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		r, ok := request.(*createReq)
		if !ok {
			return next(ctx, method, request)
		}
		seen, err := next(ctx, driverv1alpha1.MachineService_GetMachineStatus_FullMethodName,
			&getReq{Meta: r.GetMeta(), Machine: r.GetMachine(), Provider: r.GetProvider()})
		if err != nil || machineOf(seen).GetProviderId() != "" {
			return next(ctx, method, request)
		}
		return under(r.GetMachine().GetUid()+"-again", r, func(m proto.Message) (proto.Message, error) { return next(ctx, method, m) })
	}
}
