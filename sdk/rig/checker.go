package rig

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// checker judges each call by its request and its answer.
type checker struct {
	tb     testing.TB
	name   string
	prefix string
}

// intercept judges one call.
//
//nolint:revive // gRPC decides how many parameters an interceptor has
func (c checker) intercept(
	ctx context.Context, method string, request, answer any,
	conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	c.tb.Helper()
	err := invoke(ctx, method, request, answer, conn, options...)
	var breaches []string
	if err != nil {
		breaches = c.failure(ctx, request, status.Convert(err))
	}
	if err == nil {
		breaches = c.success(request, answer)
	}
	for _, breach := range breaches {
		c.tb.Errorf("%s breaks the contract: %s", path.Base(method), breach)
	}
	return err
}

// failure judges a status other than OK.
func (c checker) failure(ctx context.Context, request any, s *status.Status) []string {
	if s.Code() == codes.Unimplemented || ctx.Err() != nil {
		return nil
	}
	var breaches []string
	if size := proto.Size(s.Proto()); size > contract.MaxStatusBytes {
		breaches = append(breaches, fmt.Sprintf("the status has %d bytes, at most %d are allowed", size, contract.MaxStatusBytes))
	}
	if _, deleting := request.(*driverv1alpha1.DeleteMachineRequest); deleting && s.Code() == codes.NotFound {
		breaches = append(breaches, "a delete answers NOT_FOUND, but deleting nothing is OK")
	}
	return append(breaches, c.reason(s)...)
}

// reason judges the ErrorInfo.
func (c checker) reason(s *status.Status) []string {
	for _, detail := range s.Details() {
		info, ok := detail.(*errdetails.ErrorInfo)
		if !ok {
			continue
		}
		if info.GetDomain() != c.name {
			return []string{fmt.Sprintf("the ErrorInfo's domain is %q, not the driver's name", info.GetDomain())}
		}
		if want, known := contract.Code(contract.ParseReason(info.GetReason())); known && want != s.Code() {
			return []string{fmt.Sprintf("%s comes with %s, not with %s", info.GetReason(), s.Code(), want)}
		}
		return nil
	}
	return []string{fmt.Sprintf("%s (%s) has no ErrorInfo", s.Code(), s.Message())}
}

// success judges an answer.
func (c checker) success(request, answer any) []string {
	var breaches []string
	for _, v := range contract.CheckAnswer(answer) {
		breaches = append(breaches, v.Field+": "+v.Description)
	}
	if a, ok := answer.(interface {
		GetMachine() *driverv1alpha1.Machine
	}); ok && a.GetMachine() != nil {
		breaches = append(breaches, c.machine("machine", request, a.GetMachine())...)
	}
	switch a := answer.(type) {
	case *driverv1alpha1.DeleteMachineResponse:
		if m := a.GetMachine(); m != nil && m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_DELETING {
			breaches = append(breaches, "machine.state: what a delete has left is DELETING, not "+m.GetState().String())
		}
	case *driverv1alpha1.ListMachinesResponse:
		breaches = append(breaches, c.list(request, a)...)
	}
	return breaches
}

// list judges a page.
func (c checker) list(request any, page *driverv1alpha1.ListMachinesResponse) []string {
	var breaches []string
	seen := map[string]bool{}
	for i, m := range page.GetMachines() {
		field := fmt.Sprintf("machines[%d]", i)
		breaches = append(breaches, c.machine(field, request, m)...)
		if seen[m.GetRef().GetUid()] {
			breaches = append(breaches, field+": its uid is on the page twice")
		}
		seen[m.GetRef().GetUid()] = true
	}
	r, ok := request.(*driverv1alpha1.ListMachinesRequest)
	if ok && r.GetPageSize() > 0 && len(page.GetMachines()) > int(r.GetPageSize()) {
		breaches = append(breaches, fmt.Sprintf("machines: has %d, page_size is %d", len(page.GetMachines()), r.GetPageSize()))
	}
	return breaches
}

// machine judges what an answer says of a machine against what the request asked.
func (c checker) machine(field string, request any, m *driverv1alpha1.Machine) []string {
	var breaches []string
	if r, ok := request.(interface {
		GetMachine() *driverv1alpha1.MachineRef
	}); ok && !proto.Equal(r.GetMachine(), m.GetRef()) {
		breaches = append(breaches, field+".ref: is not the machine that was asked about")
	}
	if r, ok := request.(interface {
		GetMeta() *driverv1alpha1.RequestMeta
	}); ok && r.GetMeta().GetClusterUid() != m.GetClusterUid() {
		breaches = append(breaches, field+".cluster_uid: is not the cluster that asked")
	}
	if m.GetProviderId() != "" && !strings.HasPrefix(m.GetProviderId(), c.prefix) {
		breaches = append(breaches, fmt.Sprintf("%s.provider_id: does not begin with %q, as announced", field, c.prefix))
	}
	return breaches
}
