package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// The statuses of volumes that the driver tells apart:
// https://docs.openstack.org/api-ref/block-storage/v3/#volumes-volumes.
const (
	volumeAvailable = "available"
	volumeError     = "error"
)

// rootDisk is the root disk's name among a machine's disks; a spec has none of that name.
const rootDisk = "root"

// volume is what the driver reads of a volume of Cinder.
type volume struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Created  cinderTime        `json:"created_at"`
}

func (v volume) identity() string { return v.ID }

// disk is which of the machine's disks the volume is.
func (v volume) disk() string { return v.Metadata[ownership.Disk] }

// isFree says whether Cinder lets a volume be deleted.
func (v volume) isFree() bool {
	return v.Status == volumeAvailable || strings.HasPrefix(v.Status, volumeError)
}

// left says, in Cinder's word for it, what is still to be waited for.
func (v volume) left() string {
	return "The volume " + v.ID + " is to go; Cinder said that it was " + v.Status + "."
}

func (v volume) compareAge(other volume) int {
	if c := time.Time(v.Created).Compare(time.Time(other.Created)); c != 0 {
		return c
	}
	return strings.Compare(v.ID, other.ID)
}

// cinderTime is a time in UTC, which Cinder writes without saying so.
type cinderTime time.Time

// UnmarshalJSON reads Cinder's form.
func (t *cinderTime) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	read, err := time.Parse("2006-01-02T15:04:05.999999", strings.TrimSuffix(text, "Z"))
	*t = cinderTime(read)
	return err
}

// volumesListed lists the volumes of a cluster in the project; none where there is no block
// storage.
func volumesListed(ctx context.Context, in *session.Session, cluster string) ([]volume, error) {
	if in.Volume == nil {
		return nil, nil
	}
	filter, _ := json.Marshal(map[string]string{ownership.Cluster: cluster}) // strings cannot fail
	return listing[volume](ctx, in.Volume, "volumes/detail", "volumes", url.Values{"metadata": {string(filter)}})
}

// volumesOf returns the volumes of machines by uid, the oldest first.
func volumesOf(ctx context.Context, where clusterScope, _ []string) (map[string][]volume, error) {
	found, err := volumesListed(ctx, where.cloud, where.cluster)
	if err != nil {
		return nil, err
	}
	return grouped(found, func(v volume) string {
		if owner, _ := ownership.FromMetadata(v.Metadata); owner.Cluster == where.cluster {
			return owner.UID
		}
		return "" // a Cinder that does not obey the filter
	}, volume.compareAge), nil
}

// volumePlan is a volume as it shall be.
type volumePlan struct {
	disk string
	body volumes.CreateOpts
	// typeField and zoneField are where its type and its zone stand.
	typeField, zoneField string
}

// volumes are those that the spec asks for.
func (p planner) volumes(image string) []volumePlan {
	var all []volumePlan
	add := func(plan volumePlan) {
		plan.body.Name, plan.body.Description = p.owner.ServerName()+"-"+plan.disk, p.owner.Description()
		plan.body.Metadata = p.owner.Metadata()
		plan.body.Metadata[ownership.Disk] = plan.disk
		all = append(all, plan)
	}
	if root := p.want.RootDisk; root != nil {
		add(volumePlan{
			disk: rootDisk, typeField: "rootDiskVolumeType", zoneField: "rootDiskAvailabilityZone",
			body: volumes.CreateOpts{Size: root.SizeGB, VolumeType: root.VolumeType, AvailabilityZone: root.AvailabilityZone, ImageID: image},
		})
	}
	for i, v := range p.want.Volumes {
		if v.IsLocal {
			continue
		}
		at := fmt.Sprintf("additionalBlockDevices[%d].storage.volume.", i)
		add(volumePlan{
			disk: v.Name, typeField: at + "type", zoneField: at + "availabilityZone",
			body: volumes.CreateOpts{Size: v.SizeGB, VolumeType: v.VolumeType, AvailabilityZone: v.AvailabilityZone},
		})
	}
	return all
}

// makeVolumes returns the ids of the volumes for the server by disk. It makes those that are
// missing, and waits in no call: until all can be attached, it returns OPERATION_PENDING. What was
// just made is looked at again before it is used, so that of two that were asked for at the same
// time the older one counts. The younger goes.
func (c *creation) makeVolumes(ctx context.Context, planned []volumePlan, found []volume) (map[string]string, error) {
	if len(planned) == 0 {
		return nil, nil
	}
	if c.cloud.Volume == nil {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
			"The catalog has no block storage service, which the machine's disks need.", sdk.WithField(volumeField(c.want), "The cloud has no Cinder."))
	}
	ids, waits := map[string]string{}, false
	for _, plan := range planned {
		have := slices.DeleteFunc(slices.Clone(found), func(v volume) bool { return v.disk() != plan.disk })
		if len(have) == 0 {
			_, err := volumes.Create(ctx, c.cloud.Volume, plan.body, nil).Extract()
			c.noteOutcome(err)
			if err != nil {
				return nil, c.explainVolume(plan, err)
			}
			waits = true
			continue
		}
		for _, younger := range have[1:] {
			if err := deleteVolume(ctx, c.cloud, younger); err != nil {
				return nil, err
			}
		}
		switch first := have[0]; {
		case first.Status == volumeAvailable:
			ids[plan.disk] = first.ID
		case first.isFree():
			if err := deleteVolume(ctx, c.cloud, first); err != nil {
				return nil, err
			}
			return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE,
				"Cinder could not make the volume of the disk "+plan.disk+": it was in the status "+first.Status+", as where no back end of its type and zone has room.")
		default:
			waits = true
		}
	}
	if waits {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING,
			"The machine's volumes are being made.", sdk.WithRetryAfter(c.driver.options.PollInterval))
	}
	return ids, nil
}

// explainVolume is explain for the request for a volume. It names the field of what is not there.
func (c *creation) explainVolume(plan volumePlan, err error) error {
	explained := c.explain(err)
	said := status.Convert(explained)
	if said.Code() != codes.FailedPrecondition {
		return explained
	}
	for words, field := range map[string]string{"Volume type": plan.typeField, "Availability zone": plan.zoneField} {
		if strings.Contains(said.Message(), words) {
			return sdk.AddDetails(explained, sdk.WithField(field, said.Message()))
		}
	}
	return explained
}

// volumeField is the first field that asks for a volume.
func volumeField(want spec.Spec) string {
	if want.RootDisk != nil {
		return "rootDiskSizeGB"
	}
	return "additionalBlockDevices"
}

// deleteVolume asks Cinder to delete a volume, if it can go now. One that is still attached, or is
// being made or deleted, stays to be asked for again.
func deleteVolume(ctx context.Context, in *session.Session, v volume) error {
	if !v.isFree() {
		return nil
	}
	return done(volumes.Delete(ctx, in.Volume, v.ID, volumes.DeleteOpts{}).ExtractErr())
}

// blockDevices are the disks of a server that has others than its flavor's. The volumes outlive it:
// the driver deletes them, once.
func blockDevices(want spec.Spec, image string, ids map[string]string) []servers.BlockDevice {
	if want.RootDisk == nil && len(want.Volumes) == 0 {
		return nil
	}
	root := servers.BlockDevice{
		SourceType: servers.SourceImage, UUID: image, DestinationType: servers.DestinationLocal, DeleteOnTermination: true,
	}
	if id := ids[rootDisk]; id != "" {
		root = servers.BlockDevice{SourceType: servers.SourceVolume, UUID: id, DestinationType: servers.DestinationVolume}
	}
	devices := []servers.BlockDevice{root}
	for _, v := range want.Volumes {
		device := servers.BlockDevice{SourceType: servers.SourceVolume, UUID: ids[v.Name], DestinationType: servers.DestinationVolume, BootIndex: -1, Tag: v.Name}
		if v.IsLocal {
			device = servers.BlockDevice{
				SourceType: servers.SourceBlank, DestinationType: servers.DestinationLocal, BootIndex: -1, Tag: v.Name, VolumeSize: v.SizeGB,
				DeleteOnTermination: true,
			}
		}
		devices = append(devices, device)
	}
	return devices
}
