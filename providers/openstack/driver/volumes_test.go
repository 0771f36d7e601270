package driver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// onVolumes is a machine with two volumes and a local disk.
func onVolumes() map[string]any {
	return map[string]any{"flavor": "m1.ephemeral", "rootDiskSizeGB": 20, "rootDiskVolumeType": "ssd", "rootDiskAvailabilityZone": "nova", "additionalBlockDevices": []map[string]any{
		{"name": "data", "sizeGiB": 10, "storage": map[string]any{"volume": map[string]any{"type": "ssd", "availabilityZone": "nova"}}},
		{"name": "cache", "sizeGiB": 5, "storage": map[string]any{"type": "Local"}},
	}}
}

// Local disks that the flavor has no room for are refused before anything is made.
func TestLocalDisksHaveToFitTheFlavor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	local := func(size int) map[string]any {
		return map[string]any{"name": fmt.Sprintf("d%d", size), "sizeGiB": size, "storage": map[string]any{"type": "Local"}}
	}
	more := map[string]any{"flavor": "m1.ephemeral", "additionalBlockDevices": []map[string]any{local(5), local(4)}}
	_, err := w.create("one", more)
	w.refused("9 GiB for the flavor's 8", err, driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID)
	if fields := sdk.FieldViolations(err); len(fields) != 1 || fields[0].GetField() != "additionalBlockDevices[1].sizeGiB" {
		t.Errorf("it says %v", err)
	}
	w.leavesNothing("one")
	more["additionalBlockDevices"] = []map[string]any{local(5), local(3)}
	w.created("two", more)
}

// The driver is killed, or an answer lost, at each call in turn, on the way in and on the way out.
// There is one of each volume while the machine is there, and none after it.
func TestVolumesAreMadeAndDeletedOnce(t *testing.T) {
	t.Parallel()
	for _, effect := range []backendv1alpha1.FaultEffect{backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST, backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR} {
		for _, operation := range []string{"CreatePort", "CreateVolume", "ListVolumes", "CreateServer", "DeleteServer", "DeleteVolume", "DeletePort"} {
			t.Run(operation+effect.String(), func(t *testing.T) {
				w := newWorld(t, openstacksim.Options{VolumeLatency: 20 * time.Millisecond, DeleteLatency: 20 * time.Millisecond})
				w.inject(&backendv1alpha1.Fault{
					Match: &backendv1alpha1.FaultMatch{Operation: operation}, Effect: effect, Times: 1,
					Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
				})
				restarted := func() {
					w.Driver = New(session.NewPool(session.Options{}), Options{Version: "test", CreateSettle: settle, PollInterval: poll / 10})
				}
				restarted()
				deadline := time.Now().Add(20 * time.Second)
				for w.left()["vm"] == 0 {
					if _, err := w.create("one", onVolumes()); err != nil && status.Code(err) != codes.Aborted {
						restarted()
					}
					if time.Now().After(deadline) {
						t.Fatalf("there are %v", w.left())
					}
				}
				if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1, "volume": 2}, w.left()); diff != "" {
					t.Errorf("there are (-want +got):\n%s", diff)
				}
				restarted()
				for {
					left, err := w.delete("one")
					if err == nil && left == nil {
						break
					}
					if err != nil {
						restarted()
					}
					if time.Now().After(deadline) {
						t.Fatalf("left are %v: %v", w.left(), err)
					}
				}
				if left := w.left(); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			})
		}
	}
}

// A volume quota that is used up is said so, makes no server, and is over when it is raised.
func TestAVolumeQuotaEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{Quota: map[string]int64{"volume": 1}})
	_, err := w.settled("one", onVolumes())
	w.refused("a machine of two volumes", err, driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED)
	if !strings.Contains(err.Error(), "Maximum number of volumes allowed (1) exceeded for quota 'volumes'") {
		t.Errorf("in whose words? %v", err)
	}
	if diff := cmp.Diff(map[string]int{"port": 1, "volume": 1}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"volume": -1}}); err != nil {
		t.Fatal(err)
	}
	w.created("one", onVolumes())
	w.leavesNothing("one")
}

// A back end that is full puts a volume in error. That is the create's error, and the volume goes.
func TestAVolumeThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	if _, err := w.create("one", onVolumes()); err == nil {
		t.Fatal("the volumes are not made yet")
	}
	id := w.rootVolume()
	end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/volumes/detail") {
			return false
		}
		_, _ = io.WriteString(rw, `{"volumes":[{"id":"`+id+`","status":"error","created_at":"2026-01-01T12:00:00.000000","metadata":{"millwright-cluster":"`+clusterUID+
			`","millwright-machine":"uid-of-one","millwright-namespace":"kube-system","millwright-name":"one","millwright-disk":"root"}}]}`)
		return true
	})
	_, err := w.create("one", onVolumes())
	end()
	w.refused("a volume in error", err, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE)
	w.created("one", onVolumes())
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1, "volume": 2}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
}

// rootVolume is the id of the only root disk in the project.
func (w *world) rootVolume() string {
	w.Helper()
	pages, err := volumes.List(w.session("").Volume, volumes.ListOpts{Metadata: map[string]string{ownership.Disk: rootDisk}}).AllPages(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	all, err := volumes.ExtractVolumes(pages)
	if err != nil || len(all) != 1 {
		w.Fatalf("%d root disks: %v", len(all), err)
	}
	return all[0].ID
}

// Two drivers that ask for a volume at the same time leave one: the younger goes before it is used.
func TestOfTwoVolumesTheOlderStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	if _, err := w.create("one", onVolumes()); err == nil {
		t.Fatal("the volumes are not made yet")
	}
	metadata := ownership.Owner{Cluster: clusterUID, Namespace: "kube-system", Name: "one", UID: "uid-of-one"}.Metadata()
	metadata[ownership.Disk] = rootDisk
	image, err := w.session("").ImageID(t.Context(), "image", "tiny-raw")
	if err != nil {
		t.Fatal(err)
	}
	younger, err := volumes.Create(t.Context(), w.session("").Volume, volumes.CreateOpts{Size: 20, ImageID: image, Metadata: metadata}, nil).Extract()
	if err != nil {
		t.Fatal(err)
	}
	w.created("one", onVolumes())
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1, "volume": 2}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
	if err := volumes.Get(t.Context(), w.session("").Volume, younger.ID).Err; !session.IsGone(err) {
		t.Errorf("the younger volume: %v", err)
	}
}

// A volume that nothing else is left of is its machine's: it is listed, and deleted.
func TestVolumesAloneAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	if _, err := w.create("one", map[string]any{"rootDiskSizeGB": 1}); err == nil {
		t.Fatal("the volume is not made yet")
	}
	in := w.session("")
	pages, err := ports.List(in.Network, ports.ListOpts{ProjectID: in.ProjectID, Name: "kube-system/one/uid-of-one"}).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := ports.ExtractPorts(pages)
	if err != nil || len(found) != 1 {
		t.Fatalf("the machine's ports: %v, %v", found, err)
	}
	if err := ports.Delete(t.Context(), in.Network, found[0].ID).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	listed := w.list()
	if len(listed) != 1 || listed[0].GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || listed[0].GetRef().GetName() != "one" || listed[0].GetProviderId() != "" {
		t.Errorf("listed are %v", listed)
	}
	w.leavesNothing("one")
}

// While Cinder does not answer, machines are listed all the same, and those without volumes go.
func TestAnOutageOfCinder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	made := w.created("plain", nil)
	w.created("onvolumes", onVolumes())
	end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/volume/") {
			return false
		}
		rw.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	if listed := w.list(); len(listed) != 2 {
		t.Errorf("listed are %v", listed)
	}
	for w.left()["vm"] == 2 {
		if _, err := w.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{
			Meta: meta(), Machine: ref("plain"), Provider: w.provider(nil), LastKnownState: made.GetLastKnownState(),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := w.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{
		Meta: meta(), Machine: ref("plain"), Provider: w.provider(nil), LastKnownState: made.GetLastKnownState(),
	}); err != nil || left != nil {
		t.Errorf("a machine without volumes: %v, %v", left, err)
	}
	end()
	w.leavesNothing("onvolumes")
}

// What a volume is to be made with and the cloud has not is an error of its field.
func TestWhatVolumesAreMadeOfIsNotThere(t *testing.T) {
	t.Parallel()
	for field, more := range map[string]map[string]any{
		"rootDiskVolumeType":       {"rootDiskSizeGB": 1, "rootDiskVolumeType": "nothing"},
		"rootDiskAvailabilityZone": {"rootDiskSizeGB": 1, "rootDiskAvailabilityZone": "nowhere"},
		"additionalBlockDevices[0].storage.volume.type": {"additionalBlockDevices": []map[string]any{
			{"name": "data", "sizeGiB": 1, "storage": map[string]any{"volume": map[string]any{"type": "nothing"}}},
		}},
	} {
		w := newWorld(t, openstacksim.Options{})
		_, err := w.create("one", more)
		w.refused(field, err, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND)
		if fields := sdk.FieldViolations(err); len(fields) != 1 || fields[0].GetField() != field {
			t.Errorf("%s: it names %v", field, fields)
		}
	}
}

// A volume that Cinder does not delete keeps its machine, and says why in Cinder's words.
func TestAVolumeThatStays(t *testing.T) {
	t.Parallel()
	const words = "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be " +
		"migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer."
	w := newWorld(t, openstacksim.Options{})
	w.created("one", map[string]any{"rootDiskSizeGB": 1})
	end := w.answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || !strings.HasPrefix(r.URL.Path, "/volume/") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"badRequest": {"code": 400, "message": "`+words+`"}}`)
		return true
	})
	m, err := w.delete("one")
	for m != nil && err == nil {
		m, err = w.delete("one")
	}
	w.refused("a delete whose volume stays", err, driverv1alpha1.ErrorReason_ERROR_REASON_DELETION_PROTECTED)
	if !strings.Contains(err.Error(), words) {
		t.Errorf("in whose words? %v", err)
	}
	end()
	w.leavesNothing("one")
}
