package driver

import (
	"cmp"
	"context"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

var (
	_ sdk.SpecSchema        = (*Driver)(nil)
	_ sdk.SpecDefaulter     = (*Driver)(nil)
	_ sdk.SpecValidator     = (*Driver)(nil)
	_ sdk.InstanceTemplater = (*Driver)(nil)
)

// GetProviderSpecSchema implements sdk.SpecSchema.
func (d *Driver) GetProviderSpecSchema(
	context.Context, *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: spec.Schema()}, nil
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

// ValidateProviderSpec implements sdk.SpecValidator. Online it finds out whether all that the spec
// names is there.
func (d *Driver) ValidateProviderSpec(
	ctx context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	raw, secrets := r.GetProvider().GetProviderSpec(), r.GetProvider().GetSecrets()
	answer := &driverv1alpha1.ValidateProviderSpecResponse{Violations: spec.Validate(raw, secrets, d.options.Environment)}
	if len(answer.GetViolations()) > 0 || !r.GetOnline() {
		return answer, nil
	}
	want, err := spec.Read(raw, secrets, d.options.Environment)
	if err != nil {
		return nil, err
	}
	opened, err := d.sessions.Open(ctx, want.Account, want.ComputeAPIVersion)
	if err != nil {
		return nil, err
	}
	answer.Violations, err = planner{cloud: opened, want: want}.missing(ctx)
	return answer, err
}

// violations are the fields that an error names as not there (yet); none where it is another one.
func violations(err error) []*driverv1alpha1.FieldViolation {
	s := status.Convert(err)
	if s.Code() != codes.FailedPrecondition {
		return nil
	}
	var found []*driverv1alpha1.FieldViolation
	for _, detail := range s.Details() {
		bad, is := detail.(*errdetails.BadRequest)
		if !is {
			continue
		}
		for _, field := range bad.GetFieldViolations() {
			found = append(found, &driverv1alpha1.FieldViolation{Field: field.GetField(), Description: s.Message()})
		}
	}
	return found
}

// GetInstanceTemplate implements sdk.InstanceTemplater: what the flavor offers.
func (d *Driver) GetInstanceTemplate(
	ctx context.Context, r *driverv1alpha1.GetInstanceTemplateRequest,
) (*driverv1alpha1.GetInstanceTemplateResponse, error) {
	want, err := spec.Read(r.GetProvider().GetProviderSpec(), r.GetProvider().GetSecrets(), d.options.Environment)
	if err != nil {
		return nil, err
	}
	opened, err := d.sessions.Open(ctx, want.Account, want.ComputeAPIVersion)
	if err != nil {
		return nil, err
	}
	flavor, err := opened.Flavor(ctx, "flavor", want.Flavor)
	if err != nil {
		return nil, err
	}
	// Without its image no server is made, but the flavor's size is what was asked for.
	image, err := opened.FindImage(ctx, "image", want.Image)
	if err != nil && status.Code(err) != codes.FailedPrecondition {
		return nil, err
	}
	return &driverv1alpha1.GetInstanceTemplateResponse{Template: template(opened, want, flavor, image)}, nil
}

// architectures are Kubernetes' words for those of Glance.
var architectures = map[string]string{"aarch64": "arm64", "ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x"}

// template describes a server of a flavor. The architecture is the image's, else amd64.
func template(in *session.Session, want spec.Spec, flavor session.Flavor, image session.Image) *driverv1alpha1.InstanceTemplate {
	disk := flavor.DiskGB
	if want.RootDisk != nil {
		disk = want.RootDisk.SizeGB
	}
	t := &driverv1alpha1.InstanceTemplate{
		InstanceType: flavor.Name, Architecture: cmp.Or(architectures[image.Architecture], "amd64"), OperatingSystem: "linux",
		Capacity: map[string]string{"cpu": strconv.Itoa(flavor.VCPUs), "memory": strconv.Itoa(flavor.RAMMiB) + "Mi", "pods": "110"},
		Labels:   map[string]string{"node.kubernetes.io/instance-type": flavor.Name, "topology.kubernetes.io/region": in.Region},
	}
	if disk > 0 {
		t.Capacity["ephemeral-storage"] = strconv.Itoa(disk) + "Gi"
	}
	if want.AvailabilityZone != "" {
		t.Labels["topology.kubernetes.io/zone"] = want.AvailabilityZone
	}
	return t
}
