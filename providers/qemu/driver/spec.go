package driver

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/spec"
)

// readSpec returns a spec that this host can run.
func (d *Driver) readSpec(raw []byte) (spec.Machine, error) {
	m, err := spec.Read(raw)
	if err != nil {
		return spec.Machine{}, err
	}
	missing := d.missing(m)
	if len(missing) == 0 {
		return m, nil
	}
	return spec.Machine{}, spec.Refusal(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND, missing)
}

// missing is what a spec names and this host does not have: it may yet come.
func (d *Driver) missing(m spec.Machine) []spec.Flaw {
	var found []spec.Flaw
	files := m.Files()
	for _, field := range slices.Sorted(maps.Keys(files)) {
		if _, err := d.options.Images.Path(files[field]); err != nil {
			found = append(found, spec.Flaw{Path: field, Description: "cannot be read below --image-dir: " + err.Error()})
		}
	}
	image, err := d.options.Images.Image(m.Image)
	if size := m.DiskBytes(); err == nil && size != 0 && size < image.Bytes {
		found = append(found, spec.Flaw{Path: "disk", Description: fmt.Sprintf("is smaller than the image, which has %d bytes", image.Bytes)})
	}
	if m.MemoryMiB() > d.options.MemoryMiB {
		found = append(found, spec.Flaw{Path: "memory", Description: fmt.Sprintf("is more than the %dMi that all VMs may have together (--memory)", d.options.MemoryMiB)})
	}
	if m.Network.Type == spec.BridgeNetwork && d.options.Bridge.Name == "" {
		found = append(found, spec.Flaw{Path: "network.type", Description: "is bridge, and the driver was given none (--bridge)"})
	}
	return found
}

// GetProviderSpecSchema implements sdk.SpecSchema.
func (d *Driver) GetProviderSpecSchema(
	context.Context, *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: spec.Schema, Version: "1"}, nil
}

// DefaultProviderSpec implements sdk.SpecDefaulter.
func (d *Driver) DefaultProviderSpec(
	_ context.Context, r *driverv1alpha1.DefaultProviderSpecRequest,
) (*driverv1alpha1.DefaultProviderSpecResponse, error) {
	filled, err := spec.Default(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.DefaultProviderSpecResponse{ProviderSpec: filled}, nil
}

// ValidateProviderSpec implements sdk.SpecValidator. Online it looks at this host: whether the
// files are there, and QEMU, and whether there is ever room.
func (d *Driver) ValidateProviderSpec(
	_ context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	answer := &driverv1alpha1.ValidateProviderSpecResponse{}
	m, err := spec.Read(r.GetProvider().GetProviderSpec())
	if err != nil {
		answer.Violations = violations(err)
		return answer, nil
	}
	if !r.GetOnline() {
		return answer, nil
	}
	for _, f := range d.missing(m) {
		answer.Violations = append(answer.Violations, &driverv1alpha1.FieldViolation{Field: f.Path, Description: f.Description})
	}
	if err := d.findPrograms(); err != nil {
		answer.Violations = append(answer.Violations, &driverv1alpha1.FieldViolation{Field: "cloudProviderSpec", Description: err.Error()})
	}
	return answer, nil
}

// violations are the fields that an error names.
func violations(err error) []*driverv1alpha1.FieldViolation {
	var found []*driverv1alpha1.FieldViolation
	for _, detail := range status.Convert(err).Details() {
		bad, _ := detail.(*errdetails.BadRequest)
		for _, field := range bad.GetFieldViolations() {
			found = append(found, &driverv1alpha1.FieldViolation{Field: field.GetField(), Description: field.GetDescription()})
		}
	}
	return found
}

// GetInstanceTemplate implements sdk.InstanceTemplater.
func (d *Driver) GetInstanceTemplate(
	_ context.Context, r *driverv1alpha1.GetInstanceTemplateRequest,
) (*driverv1alpha1.GetInstanceTemplateResponse, error) {
	m, err := spec.Read(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.GetInstanceTemplateResponse{Template: &driverv1alpha1.InstanceTemplate{
		Capacity:     map[string]string{"cpu": strconv.Itoa(m.CPUs), "memory": fmt.Sprintf("%dMi", m.MemoryMiB()), "pods": "110"},
		Architecture: runtime.GOARCH, OperatingSystem: "linux",
	}}, nil
}
