package driver

import (
	"context"
	"fmt"
	"runtime"
	"strconv"

	"github.com/millwright-dev/millwright/providers/qemu/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// readSpec returns a spec that this host can run. What it names and the host does not have is
// DEPENDENCY_NOT_FOUND: it may yet come.
func (d *Driver) readSpec(raw []byte) (spec.Machine, error) {
	m, err := spec.Read(raw)
	if err != nil {
		return spec.Machine{}, err
	}
	var missing spec.Flaws
	for _, file := range m.Files() {
		image, err := d.options.Images.Image(file.Path)
		if err != nil {
			missing.Add(true, file.Field, "cannot be read below --image-dir: "+err.Error())
		}
		size := m.DiskBytes()
		missing.Add(file.Field == "image" && size != 0 && size < image.Bytes, "disk", fmt.Sprintf("is smaller than the image, which has %d bytes", image.Bytes))
	}
	missing.Add(m.MemoryMiB() > d.options.MemoryMiB, "memory",
		fmt.Sprintf("is more than the %dMi that all VMs may have together (--memory)", d.options.MemoryMiB))
	missing.Add(m.Network.Type == spec.BridgeNetwork && d.options.Bridge.Name == "", "network.type", "is bridge, and the driver was given none (--bridge)")
	if err := d.findPrograms(); err != nil {
		missing.Add(true, "cloudProviderSpec", "needs QEMU: "+err.Error())
	}
	return m, missing.Refuse(sdk.ReasonDependencyNotFound)
}

// GetProviderSpecSchema implements sdk.SpecSchema.
func (d *Driver) GetProviderSpecSchema(context.Context, *sdk.GetProviderSpecSchemaRequest) (*sdk.GetProviderSpecSchemaResponse, error) {
	return sdk.SchemaOf[spec.Machine]()
}

// DefaultProviderSpec implements sdk.SpecDefaulter.
func (d *Driver) DefaultProviderSpec(_ context.Context, r *sdk.DefaultProviderSpecRequest) (*sdk.DefaultProviderSpecResponse, error) {
	filled, err := spec.Default(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	return &sdk.DefaultProviderSpecResponse{ProviderSpec: filled}, nil
}

// ValidateProviderSpec implements sdk.SpecValidator. Online it looks at this host: whether the
// files are there, and QEMU, and whether there is ever room.
func (d *Driver) ValidateProviderSpec(_ context.Context, r *sdk.ValidateProviderSpecRequest) (*sdk.ValidateProviderSpecResponse, error) {
	read := spec.Read
	if r.GetOnline() {
		read = d.readSpec
	}
	_, err := read(r.GetProvider().GetProviderSpec())
	return &sdk.ValidateProviderSpecResponse{Violations: sdk.FieldViolations(err)}, nil
}

// GetInstanceTemplate implements sdk.InstanceTemplater.
func (d *Driver) GetInstanceTemplate(_ context.Context, r *sdk.GetInstanceTemplateRequest) (*sdk.GetInstanceTemplateResponse, error) {
	m, err := spec.Read(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	return &sdk.GetInstanceTemplateResponse{Template: &sdk.InstanceTemplate{
		Capacity:     map[string]string{"cpu": strconv.Itoa(m.CPUs), "memory": fmt.Sprintf("%dMi", m.MemoryMiB()), "pods": "110"},
		Architecture: runtime.GOARCH, OperatingSystem: "linux",
	}}, nil
}
