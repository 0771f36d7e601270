package contract

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestFailuresAreJudged(t *testing.T) {
	with := func(code codes.Code, message string, details ...protoadapt.MessageV1) *status.Status {
		s, err := status.New(code, message).WithDetails(details...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	info := func(domain, reason string) *errdetails.ErrorInfo {
		return &errdetails.ErrorInfo{Domain: domain, Reason: reason}
	}
	get, remove := &driverv1alpha1.GetMachineStatusRequest{}, &driverv1alpha1.DeleteMachineRequest{}
	for name, tc := range map[string]struct {
		request any
		status  *status.Status
		want    string
	}{
		"as it should be":        {get, with(codes.NotFound, "gone", info("sawmill", "MACHINE_NOT_FOUND")), ""},
		"a reason of its own":    {get, with(codes.DataLoss, "lost", info("sawmill", "DISK_LOST")), ""},
		"UNIMPLEMENTED":          {get, with(codes.Unimplemented, "no"), ""},
		"no ErrorInfo":           {get, with(codes.NotFound, "gone"), "no ErrorInfo"},
		"a foreign domain":       {get, with(codes.NotFound, "gone", info("cloud", "MACHINE_NOT_FOUND")), "domain"},
		"a reason's wrong code":  {get, with(codes.Internal, "gone", info("sawmill", "MACHINE_NOT_FOUND")), "NotFound"},
		"too long":               {get, with(codes.DataLoss, strings.Repeat("x", 5000), info("sawmill", "DISK_LOST")), "bytes"},
		"nothing left to delete": {remove, with(codes.NotFound, "gone", info("sawmill", "MACHINE_NOT_FOUND")), "deleting nothing is OK"},
	} {
		e := Exchange{Driver: "sawmill", ProviderIDPrefix: "sawmill:///", Request: tc.request, Err: tc.status.Err()}
		got := strings.Join(CheckExchange(e), "\n")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: found %q, want %q", name, got, tc.want)
		}
	}
}
