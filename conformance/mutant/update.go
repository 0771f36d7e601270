package mutant

import (
	"context"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

type (
	updateReq    = driverv1alpha1.UpdateMachineRequest
	updateAnswer = driverv1alpha1.UpdateMachineResponse
)

const (
	live    = driverv1alpha1.UpdateDisposition_UPDATE_DISPOSITION_LIVE
	replace = driverv1alpha1.UpdateDisposition_UPDATE_DISPOSITION_REPLACE
)

func ofUpdates() []Mutant {
	return []Mutant{
		{Name: "replacing-at-once", Check: "update/dry-run", mutate: replacingAtOnce},
		{Name: "changing-its-mind", Check: "update/disposition", mutate: changingItsMind},
		{Name: "replacing-for-nothing", Check: "update/disposition", mutate: answered(func(a *updateAnswer) { a.Disposition = replace })},
		{Name: "updating-nobody", Check: "update/missing", mutate: updatingNobody},
	}
}

// replacingAtOnce deletes what an update would replace, also where it is only asked about.
func replacingAtOnce(next handler) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		answer, err := next(ctx, method, request)
		if a, ok := answer.(*updateAnswer); ok && err == nil && a.GetDisposition() == replace {
			r, _ := request.(*updateReq)
			_, err = next(ctx, driverv1alpha1.MachineService_DeleteMachine_FullMethodName,
				&deleteReq{Meta: r.GetMeta(), Machine: r.GetMachine(), Provider: r.GetProvider()})
		}
		return answer, err
	}
}

// changingItsMind says that a VM can be kept when it comes to it.
func changingItsMind(next handler) handler {
	return instead(func(r *updateReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if a, ok := answer.(*updateAnswer); ok && err == nil && !r.GetDryRun() {
			a.Disposition = live
		}
		return answer, err
	})(next)
}

// updatingNobody finds that a machine which never was needs no update.
func updatingNobody(next handler) handler {
	return instead(func(r *updateReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if contract.ErrorInfo(status.Convert(err)).GetReason() != contract.ReasonName(notFound) {
			return answer, err
		}
		return &updateAnswer{Disposition: live, Machine: &machine{
			Ref: r.GetMachine(), ClusterUid: r.GetMeta().GetClusterUid(), State: driverv1alpha1.MachineState_MACHINE_STATE_FAILED, Reason: "Missing",
		}}, nil
	})(next)
}
