package mutant

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func ofStatus() []Mutant {
	return []Mutant{
		{Name: "needing-the-provider-id", Check: "status/by-uid", mutate: refused(func(r *getReq) error {
			if r.GetProviderId() == "" {
				return fail(notFound, "no provider_id")
			}
			return nil
		})},
		{Name: "restless", Check: "status/stable", mutate: counted(func(a *driverv1alpha1.GetMachineStatusResponse, n int64) {
			a.Machine.Message = fmt.Sprintf("look %d", n)
		})},
		{Name: "renaming-its-vms", Check: "status/aliases", mutate: counted(func(a *driverv1alpha1.GetMachineStatusResponse, n int64) {
			a.Machine.ProviderIdAliases = []string{fmt.Sprintf("look:///%d", n)}
		})},
		{Name: "one-alias-for-all", Check: "status/aliases", mutate: described(func(m *machine) {
			if m.GetProviderId() != "" {
				m.ProviderIdAliases = []string{"region:///1"}
			}
		})},
		{Name: "inventive", Check: "status/missing", mutate: inventive},
		{Name: "blind-to-clusters", Check: "status/foreign-cluster", mutate: blindToClusters},
		{Name: "haunted", Check: "status/deleted", mutate: haunted},
		{Name: "failed-when-stopped", Check: "status/external-stop", mutate: described(func(m *machine) {
			if m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_STOPPED {
				m.State, m.Reason = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "Stopped"
			}
		})},
		{Name: "remembering", Check: "status/external-delete", mutate: haunted},
		{Name: "hopeful", Check: "status/failed", mutate: described(func(m *machine) {
			if m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
				m.State = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
			}
		})},
		{Name: "reasonless", Check: "status/failed", mutate: described(func(m *machine) { m.Reason = "" })},
		{Name: "gone-in-another-account", Check: "status/account-changed", mutate: as(driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED, notFound)},
		{Name: "creating-when-asked", Check: "status/read-only", mutate: creatingWhenAsked},
		{Name: "waiting-for-boot", Check: "status/no-wait", mutate: waitingForBoot},
		{Name: "hiding-duplicates", Check: "status/duplicates", mutate: described(func(m *machine) { m.DuplicateProviderIds = nil })},
		{Name: "without-fencing", Check: "status/stale-epoch", mutate: asked(func(r interface {
			proto.Message
			GetMeta() *driverv1alpha1.RequestMeta
		},
		) {
			if r.GetMeta() != nil {
				r.GetMeta().LeaderEpoch = 0
			}
		})},
	}
}

// inventive says of machines that never were that they failed.
func inventive(next handler) handler {
	return instead(func(r *getReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if contract.ErrorInfo(status.Convert(err)).GetReason() != contract.ReasonName(notFound) {
			return answer, err
		}
		return &driverv1alpha1.GetMachineStatusResponse{Machine: &machine{
			Ref: r.GetMachine(), ClusterUid: r.GetMeta().GetClusterUid(), State: driverv1alpha1.MachineState_MACHINE_STATE_FAILED, Reason: "Missing",
		}}, nil
	})(next)
}

// creatingWhenAsked mends what it does not find.
func creatingWhenAsked(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		answer, err := next(ctx, method, request)
		r, ok := request.(*getReq)
		if !ok || contract.ErrorInfo(status.Convert(err)).GetReason() != contract.ReasonName(notFound) {
			return answer, err
		}
		// Whatever it answers, the machine is there now.
		_, _ = next(ctx, driverv1alpha1.MachineService_CreateMachine_FullMethodName,
			&createReq{Meta: r.GetMeta(), Machine: r.GetMachine(), Provider: r.GetProvider()})
		return answer, err
	}
}

// waitingForBoot answers when the VM runs, or after six seconds.
func waitingForBoot(next handler) handler {
	return instead(func(r *getReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		for range 60 {
			if machineOf(answer).GetState() != driverv1alpha1.MachineState_MACHINE_STATE_CREATING {
				break
			}
			<-time.After(100 * time.Millisecond)
			answer, err = next(r)
		}
		return answer, err
	})(next)
}

// blindToClusters takes a uid for that of the cluster which had it first.
func blindToClusters(next handler) handler {
	var clusters sync.Map
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		r, ok := request.(interface {
			GetMeta() *driverv1alpha1.RequestMeta
			GetMachine() *driverv1alpha1.MachineRef
		})
		if !ok || r.GetMeta() == nil {
			return next(ctx, method, request)
		}
		mine := r.GetMeta().GetClusterUid()
		first, _ := clusters.LoadOrStore(r.GetMachine().GetUid(), mine)
		r.GetMeta().ClusterUid = first.(string)
		answer, err := next(ctx, method, request)
		if m := machineOf(answer); err == nil && m != nil {
			m.ClusterUid = mine
		}
		return answer, err
	}
}

// haunted answers from memory what the cloud does not know any more.
func haunted(next handler) handler {
	var last sync.Map
	remember := answered(func(a *driverv1alpha1.CreateMachineResponse) {
		last.Store(a.GetMachine().GetRef().GetUid(), proto.CloneOf(a.GetMachine()))
	})
	return instead(func(r *getReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		if m, seen := last.Load(r.GetMachine().GetUid()); seen {
			return &driverv1alpha1.GetMachineStatusResponse{Machine: m.(*machine)}, nil
		}
		return next(r)
	})(remember(next))
}
