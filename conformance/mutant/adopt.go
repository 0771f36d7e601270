package mutant

import (
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

type adoptReq = driverv1alpha1.AdoptMachineRequest

func ofAdoptions() []Mutant {
	return []Mutant{
		{Name: "keeping-former-tags", Check: "adopt/happy", mutate: asked(func(r *adoptReq) { r.FormerTags = nil })},
		{Name: "adopting-the-vm-alone", Check: "adopt/happy", mutate: asked(func(r *adoptReq) { r.ResourceIds = nil })},
		{Name: "adopting-from-others", Check: "adopt/of-another", mutate: adoptingFromOthers},
		{Name: "adopting-what-it-finds", Check: "adopt/missing", mutate: asked(func(r *adoptReq) { r.ResourceIds = nil })},
	}
}

// adoptingFromOthers says that another machine's VM has become this one's.
func adoptingFromOthers(next handler) handler {
	return instead(func(r *adoptReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if contract.ErrorInfo(status.Convert(err)).GetReason() != contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN) {
			return answer, err
		}
		return &driverv1alpha1.AdoptMachineResponse{Machine: &machine{
			Ref: r.GetMachine(), ClusterUid: r.GetMeta().GetClusterUid(), ProviderId: r.GetProviderId(), State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
		}}, nil
	})(next)
}
