package contract

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Exchange is one call of a driver and what came back.
type Exchange struct {
	// Driver is the name that the driver gave itself, ProviderIDPrefix what it announced; empty:
	// not known yet.
	Driver, ProviderIDPrefix string
	// Request and Answer are the messages; Answer counts only where Err is nil.
	Request, Answer any
	// Err is what the call ended with, as gRPC returned it. It must come from the driver: an error
	// that the caller's own side made (a deadline, a broken connection) has no ErrorInfo and would
	// be taken for a breach.
	Err error
}

// CheckExchange returns the breaches of the contract that a request and its answer show by
// themselves, for people; none when the driver kept to it.
func CheckExchange(e Exchange) []string {
	if e.Err != nil {
		return e.failure(status.Convert(e.Err))
	}
	return e.success()
}

// failure judges a status other than OK.
func (e Exchange) failure(s *status.Status) []string {
	if s.Code() == codes.Unimplemented {
		return nil
	}
	var breaches []string
	if size := proto.Size(s.Proto()); size > MaxStatusBytes {
		breaches = append(breaches, fmt.Sprintf("the status has %d bytes, at most %d are allowed", size, MaxStatusBytes))
	}
	if _, deleting := e.Request.(*driverv1alpha1.DeleteMachineRequest); deleting && s.Code() == codes.NotFound {
		breaches = append(breaches, "a delete answers NOT_FOUND, but deleting nothing is OK")
	}
	return append(breaches, e.reason(s)...)
}

// reason judges the ErrorInfo.
func (e Exchange) reason(s *status.Status) []string {
	info := ErrorInfo(s)
	switch {
	case info == nil:
		return []string{fmt.Sprintf("%s (%s) has no ErrorInfo", s.Code(), s.Message())}
	case info.GetDomain() != e.Driver:
		return []string{fmt.Sprintf("the ErrorInfo's domain is %q, not the driver's name", info.GetDomain())}
	}
	if want, known := Code(ParseReason(info.GetReason())); known && want != s.Code() {
		return []string{fmt.Sprintf("%s comes with %s, not with %s", info.GetReason(), s.Code(), want)}
	}
	return nil
}

// ErrorInfo returns the status's ErrorInfo; nil when it has none, which means that no driver made
// it.
func ErrorInfo(s *status.Status) *errdetails.ErrorInfo {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return nil
}

// success judges an answer.
func (e Exchange) success() []string {
	var breaches []string
	for _, v := range CheckAnswer(e.Answer) {
		breaches = append(breaches, v.Field+": "+v.Description)
	}
	if a, ok := e.Answer.(interface {
		GetMachine() *driverv1alpha1.Machine
	}); ok && a.GetMachine() != nil {
		breaches = append(breaches, e.machine("machine", a.GetMachine())...)
	}
	switch a := e.Answer.(type) {
	case *driverv1alpha1.DeleteMachineResponse:
		if m := a.GetMachine(); m != nil && m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_DELETING {
			breaches = append(breaches, "machine.state: what a delete has left is DELETING, not "+m.GetState().String())
		}
	case *driverv1alpha1.ListMachinesResponse:
		breaches = append(breaches, e.list(a)...)
	}
	return breaches
}

// list judges a page.
func (e Exchange) list(page *driverv1alpha1.ListMachinesResponse) []string {
	var breaches []string
	seen := map[string]bool{}
	for i, m := range page.GetMachines() {
		field := fmt.Sprintf("machines[%d]", i)
		breaches = append(breaches, e.machine(field, m)...)
		if seen[m.GetRef().GetUid()] {
			breaches = append(breaches, field+": its uid is on the page twice")
		}
		seen[m.GetRef().GetUid()] = true
	}
	r, ok := e.Request.(*driverv1alpha1.ListMachinesRequest)
	if ok && r.GetPageSize() > 0 && len(page.GetMachines()) > int(r.GetPageSize()) {
		breaches = append(breaches, fmt.Sprintf("machines: has %d, page_size is %d", len(page.GetMachines()), r.GetPageSize()))
	}
	return breaches
}

// machine judges what an answer says of a machine against what the request asked.
func (e Exchange) machine(field string, m *driverv1alpha1.Machine) []string {
	var breaches []string
	if r, ok := e.Request.(interface {
		GetMachine() *driverv1alpha1.MachineRef
	}); ok && !proto.Equal(r.GetMachine(), m.GetRef()) {
		breaches = append(breaches, field+".ref: is not the machine that was asked about")
	}
	if r, ok := e.Request.(interface {
		GetMeta() *driverv1alpha1.RequestMeta
	}); ok && r.GetMeta().GetClusterUid() != m.GetClusterUid() {
		breaches = append(breaches, field+".cluster_uid: is not the cluster that asked")
	}
	for _, id := range append([]string{m.GetProviderId()}, m.GetDuplicateProviderIds()...) {
		if id != "" && !strings.HasPrefix(id, e.ProviderIDPrefix) {
			breaches = append(breaches, fmt.Sprintf("%s.provider_id: does not begin with %q, as announced", field, e.ProviderIDPrefix))
		}
	}
	return breaches
}
