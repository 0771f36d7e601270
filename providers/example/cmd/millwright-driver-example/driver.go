package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"syscall"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

const name = "example" // the cloudProvider that selects this driver

type spec struct { // cloudProviderSpec
	Size string `json:"size"` // a VM keeps it
}

// driver has a folder for a cloud: the directory CLUSTER,UID.vm in it is a VM, and
// CLUSTER,UID.tags, a symbolic link, says whose it is. The disk makes each whole or not at all, and
// never twice: however many drivers are asked how often, a uid has one VM. One that is killed in
// between leaves tags alone: list shows them, create goes on from them, delete removes them.
type driver struct{ cloud *os.Root }

// tags are the text of the link. Nothing of it is secret; user data, which a real VM boots, is, and
// goes nowhere here.
type tags struct {
	Cluster string
	Machine *driverv1alpha1.MachineRef
	Spec    spec
	More    map[string]string
}

// place is where the cloud has what belongs to a uid.
func place(cluster, uid string) string { return url.PathEscape(cluster) + "," + url.PathEscape(uid) }

func (d *driver) Info() sdk.Info {
	settle := &driverv1alpha1.Limits{CreateSettle: &durationpb.Duration{Seconds: 5}} // a folder does not take longer
	return sdk.Info{Name: name, Version: "dev", ProviderIDPrefix: name + ":///", Limits: settle}
}

// CreateMachine can be repeated, since each of its steps can. A cloud that takes its time answers
// CREATING, with poll_after.
func (d *driver) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	var want spec
	if err := sdk.ReadSpec(r.GetProvider().GetProviderSpec(), &want); err != nil {
		return nil, err
	}
	at := place(r.GetMeta().GetClusterUid(), r.GetMachine().GetUid())
	text, _ := json.Marshal(tags{r.GetMeta().GetClusterUid(), r.GetMachine(), want, r.GetTags()}) // strings cannot fail
	if err := change(ctx,
		func() error { return d.cloud.Symlink(string(text), at+".tags") },
		func() error { return d.cloud.Mkdir(at+".vm", 0o700) }); err != nil {
		return nil, err
	}
	m, err := d.find(at, r.GetMachine())
	switch {
	case err != nil:
		return nil, err
	case m.GetProviderId() == "":
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, "The VM is being deleted.")
	case m.GetInstanceType() != want.Size:
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT, "The VM has another size.", sdk.WithField("size", "cannot be changed"))
	}
	return m, nil
}

func (d *driver) GetMachineStatus(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	m, err := d.find(place(r.GetMeta().GetClusterUid(), r.GetMachine().GetUid()), r.GetMachine())
	if err == nil && m == nil {
		err = sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "There is no VM of this machine.")
	}
	return m, err
}

// DeleteMachine removes all there is. A cloud that takes its time answers the machine, DELETING,
// until it is gone.
func (d *driver) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	at := place(r.GetMeta().GetClusterUid(), r.GetMachine().GetUid())
	if _, err := d.find(at, r.GetMachine()); err != nil {
		return nil, err
	}
	return nil, change(ctx, // the tags last: by them is found what is left
		func() error { return d.cloud.RemoveAll(at + ".vm") },
		func() error { return d.cloud.RemoveAll(at + ".tags") })
}

// ListMachines returns a page of all that the cluster has, or an error: never a machine less.
func (d *driver) ListMachines(_ context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	entries, err := fs.ReadDir(d.cloud.FS(), ".")
	if err != nil {
		return nil, explain(err)
	}
	var all []*driverv1alpha1.Machine
	for _, entry := range entries {
		at, tagged := strings.CutSuffix(entry.Name(), ".tags")
		if !tagged || !strings.HasPrefix(at, place(r.GetMeta().GetClusterUid(), "")) {
			continue
		}
		m, err := d.find(at, nil)
		if err != nil {
			return nil, err
		}
		if m != nil { // else it went while we looked
			all = append(all, m)
		}
	}
	return sdk.Page(r, all)
}

// find says in the contract's terms what is at a place, nil for nothing. Where a machine is given,
// it has to be that one's.
func (d *driver) find(at string, whose *driverv1alpha1.MachineRef) (*driverv1alpha1.Machine, error) {
	info, err := d.cloud.Lstat(at + ".tags")
	text, unread := d.cloud.Readlink(at + ".tags")
	if err = errors.Join(err, unread); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var t tags
	if err := errors.Join(err, json.Unmarshal([]byte(text), &t)); err != nil {
		return nil, explain(err)
	}
	if whose != nil && !proto.Equal(t.Machine, whose) {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN, "The uid belongs to a machine of another name.")
	}
	m := &driverv1alpha1.Machine{
		Ref: t.Machine, ClusterUid: t.Cluster, InstanceType: t.Spec.Size, CreateTime: timestamppb.New(info.ModTime()),
		State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING, ProviderId: name + ":///" + at,
		Addresses: []*driverv1alpha1.MachineAddress{{Type: "Hostname", Address: t.Machine.GetName()}},
	}
	_, err = d.cloud.Stat(at + ".vm")
	if errors.Is(err, fs.ErrNotExist) {
		m.State, m.ProviderId = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, ""
		m.Reason, m.Message, err = "CreateIncomplete", "There are tags, and no VM.", nil
	}
	return m, explain(err)
}

// change takes steps that can be repeated. Once the caller is gone it takes no more.
func change(ctx context.Context, steps ...func() error) error {
	for _, step := range steps {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := step(); err != nil && !errors.Is(err, fs.ErrExist) {
			return explain(err)
		}
	}
	return nil
}

// explain puts what the disk says into the contract's terms. What else goes wrong is
// PROVIDER_INTERNAL.
func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING, err.Error())
	case errors.Is(err, syscall.ENOSPC):
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, err.Error())
	}
	return err
}
