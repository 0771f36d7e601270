package contract

import (
	"bytes"
	"encoding/json"
	"fmt"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// CheckRequest checks any request of MachineService and ProviderSpecService; messages without rules
// pass. A nil message breaks every rule of its type.
func CheckRequest(request any) Violations {
	var c checker
	switch r := request.(type) {
	case *driverv1alpha1.CreateMachineRequest:
		c.machineCall(r)
		c.size("last_known_state", len(r.GetLastKnownState()), MaxLastKnownStateBytes)
	case *driverv1alpha1.GetMachineStatusRequest:
		c.machineCall(r)
		c.size("last_known_state", len(r.GetLastKnownState()), MaxLastKnownStateBytes)
	case *driverv1alpha1.DeleteMachineRequest:
		c.machineCall(r)
		c.size("last_known_state", len(r.GetLastKnownState()), MaxLastKnownStateBytes)
	case *driverv1alpha1.GetConsoleOutputRequest:
		c.machineCall(r)
		c.size("last_known_state", len(r.GetLastKnownState()), MaxLastKnownStateBytes)
	case *driverv1alpha1.AdoptMachineRequest:
		c.machineCall(r)
		c.required("provider_id", r.GetProviderId())
	case *driverv1alpha1.ListMachinesRequest:
		c.providerCall(r)
		if r.GetPageSize() < 0 {
			c.add("page_size", "is negative; 0 leaves the size to the driver")
		}
	case *driverv1alpha1.DefaultProviderSpecRequest:
		c.providerCall(r)
		if len(r.GetProvider().GetSecrets()) > 0 {
			c.add("provider.secrets", "must be empty: defaulting needs none")
		}
	case *driverv1alpha1.ValidateProviderSpecRequest:
		c.providerCall(r)
	case *driverv1alpha1.GetInstanceTemplateRequest:
		c.providerCall(r)
	}
	return c.found
}

// CheckUserData checks user data against a driver's own limit; 0 stands for
// DefaultMaxUserDataBytes.
func CheckUserData(userData []byte, limit int64) Violations {
	if limit == 0 {
		limit = DefaultMaxUserDataBytes
	}
	var c checker
	c.size("user_data", len(userData), int(limit))
	return c.found
}

type providerCall interface {
	GetMeta() *driverv1alpha1.RequestMeta
	GetProvider() *driverv1alpha1.ProviderContext
}

type machineCall interface {
	providerCall
	GetMachine() *driverv1alpha1.MachineRef
}

type checker struct {
	found Violations
}

func (c *checker) add(field, description string) {
	c.found = append(c.found, Violation{Field: field, Description: description})
}

func (c *checker) required(field, value string) {
	if value == "" {
		c.add(field, "is required")
	}
}

func (c *checker) size(field string, got, limit int) {
	if got > limit {
		c.found = append(c.found, Violation{
			Field:       field,
			Description: fmt.Sprintf("has %d bytes, at most %d are allowed", got, limit),
			Size:        true,
		})
	}
}

func (c *checker) machineCall(r machineCall) {
	c.providerCall(r)
	c.ref("machine", r.GetMachine())
}

func (c *checker) providerCall(r providerCall) {
	if r.GetMeta() == nil {
		c.add("meta", "is required")
	}
	if r.GetMeta() != nil {
		c.required("meta.request_id", r.GetMeta().GetRequestId())
		c.required("meta.cluster_uid", r.GetMeta().GetClusterUid())
	}
	if r.GetProvider() == nil {
		c.add("provider", "is required")
		return
	}
	c.object("provider.provider_spec", r.GetProvider().GetProviderSpec())
}

func (c *checker) ref(field string, ref *driverv1alpha1.MachineRef) {
	if ref == nil {
		c.add(field, "is required")
		return
	}
	c.required(field+".namespace", ref.GetNamespace())
	c.required(field+".name", ref.GetName())
	c.required(field+".uid", ref.GetUid())
}

// object checks that a provider spec is a JSON object of a permitted size.
func (c *checker) object(field string, spec []byte) {
	c.size(field, len(spec), MaxProviderSpecBytes)
	if !bytes.HasPrefix(bytes.TrimSpace(spec), []byte("{")) || !json.Valid(spec) {
		c.add(field, "is not a JSON object")
	}
}
