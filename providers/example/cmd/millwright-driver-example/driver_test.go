package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/sdk/rig"
)

// newDriver returns a driver of the folder.
func newDriver(t *testing.T, dir string) *driver {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &driver{cloud: root}
}

// serve serves a driver of the folder, and returns a client that holds it to the contract.
func serve(t *testing.T, dir string) driverv1alpha1.MachineServiceClient {
	t.Helper()
	return driverv1alpha1.NewMachineServiceClient(rig.Start(t, newDriver(t, dir)))
}

var (
	meta     = &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: "blue"}
	machine  = &driverv1alpha1.MachineRef{Namespace: "default", Name: "web-0", Uid: "u1"}
	provider = &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"size":"small"}`)}
)

func createRequest() *driverv1alpha1.CreateMachineRequest {
	return &driverv1alpha1.CreateMachineRequest{Meta: meta, Machine: machine, Provider: provider}
}

func deleteRequest() *driverv1alpha1.DeleteMachineRequest {
	return &driverv1alpha1.DeleteMachineRequest{Meta: meta, Machine: machine, Provider: provider}
}

// expectCloud compares the names in the folder.
func expectCloud(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the cloud has %q, want %q", got, want)
	}
}

func TestWhatACreateThatWasKilledLeft(t *testing.T) {
	kill := func(t *testing.T) (string, driverv1alpha1.MachineServiceClient) {
		dir := t.TempDir()
		machines := serve(t, dir)
		if _, err := machines.CreateMachine(t.Context(), createRequest()); err != nil {
			t.Fatal(err)
		}
		// As after the first of create's two steps, and of delete's.
		if err := os.Remove(filepath.Join(dir, "blue,u1.vm")); err != nil {
			t.Fatal(err)
		}
		return dir, machines
	}
	t.Run("is shown", func(t *testing.T) {
		_, machines := kill(t)
		one, err := machines.GetMachineStatus(t.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta, Machine: machine, Provider: provider})
		if err != nil {
			t.Fatal(err)
		}
		all, err := machines.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta, Provider: provider})
		if err != nil || len(all.GetMachines()) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		for _, m := range []*driverv1alpha1.Machine{one.GetMachine(), all.GetMachines()[0]} {
			if m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || m.GetProviderId() != "" || m.GetCreateTime() == nil {
				t.Errorf("shown as %v", m)
			}
		}
	})
	t.Run("is finished", func(t *testing.T) {
		dir, machines := kill(t)
		answer, err := machines.CreateMachine(t.Context(), createRequest())
		if err != nil || answer.GetMachine().GetState() != driverv1alpha1.MachineState_MACHINE_STATE_RUNNING {
			t.Errorf("%v, %v", answer, err)
		}
		expectCloud(t, dir, "blue,u1.tags", "blue,u1.vm")
	})
	t.Run("is deleted", func(t *testing.T) {
		dir, machines := kill(t)
		if answer, err := machines.DeleteMachine(t.Context(), deleteRequest()); err != nil || answer.GetMachine() != nil {
			t.Errorf("%v, %v", answer, err)
		}
		expectCloud(t, dir)
	})
}

func TestManyDriversMakeOneVM(t *testing.T) {
	dir := t.TempDir()
	var wait sync.WaitGroup
	for range 4 {
		machines := serve(t, dir)
		for range 10 {
			wait.Go(func() {
				if _, err := machines.CreateMachine(t.Context(), createRequest()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	expectCloud(t, dir, "blue,u1.tags", "blue,u1.vm")
}

func TestNothingChangesOnceTheCallerIsGone(t *testing.T) {
	dir := t.TempDir()
	d := newDriver(t, dir)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.CreateMachine(gone, createRequest()); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	expectCloud(t, dir)
	if _, err := d.CreateMachine(t.Context(), createRequest()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteMachine(gone, deleteRequest()); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
	expectCloud(t, dir, "blue,u1.tags", "blue,u1.vm")
	if _, err := d.DeleteMachine(t.Context(), deleteRequest()); err != nil {
		t.Error(err)
	}
	expectCloud(t, dir)
}

// Whatever a cluster and a uid are called, a VM is in the cloud and nowhere else, and whose it is
// cannot be mistaken.
func TestNamesThatAreNoFileNames(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "cloud")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	machines := serve(t, dir)
	for _, cluster := range []string{"..", "a", "a,b", "a/b", "%2C", "Mühle 🪚"} {
		for _, uid := range []string{"..", ".", "../../x", "b", "b,c", "u.vm"} {
			r := createRequest()
			r.Meta = &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: cluster}
			r.Machine = &driverv1alpha1.MachineRef{Namespace: "..", Name: "a/../b", Uid: uid}
			if _, err := machines.CreateMachine(t.Context(), r); err != nil {
				t.Errorf("%q of %q: %v", uid, cluster, err)
			}
		}
	}
	expectCloud(t, outside, "cloud")
	for _, cluster := range []string{"..", "a", "a,b"} {
		whose := &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: cluster}
		all, err := machines.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: whose, Provider: provider})
		if err != nil || len(all.GetMachines()) != 6 {
			t.Errorf("%q has %d VMs, %v; want 6", cluster, len(all.GetMachines()), err)
		}
	}
}

// Neither user data nor a secret reaches the disk.
func TestNothingSecretIsOnDisk(t *testing.T) {
	const canary = "canary-5f1c"
	dir := t.TempDir()
	r := createRequest()
	r.UserData = []byte(canary)
	r.Provider = &driverv1alpha1.ProviderContext{ProviderSpec: provider.GetProviderSpec(), Secrets: map[string][]byte{"key": []byte(canary)}}
	if _, err := serve(t, dir).CreateMachine(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		text := path
		switch entry.Type() {
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += target
		case 0:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(content)
		}
		if strings.Contains(text, canary) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotOursStays(t *testing.T) {
	dir := t.TempDir()
	machines := serve(t, dir)
	for _, name := range []string{"README", "blue,notes", "red,u1.vm"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := machines.DeleteMachine(t.Context(), deleteRequest()); err != nil {
		t.Error(err)
	}
	all, err := machines.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta, Provider: provider})
	if err != nil || len(all.GetMachines()) > 0 {
		t.Errorf("listed are %v, %v", all.GetMachines(), err)
	}
	expectCloud(t, dir, "README", "blue,notes", "red,u1.vm")
}

func TestWhatTheDiskSays(t *testing.T) {
	for errno, reason := range map[syscall.Errno]driverv1alpha1.ErrorReason{
		syscall.EACCES: driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING,
		syscall.EPERM:  driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING,
		syscall.ENOSPC: driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED,
	} {
		said := &fs.PathError{Op: "mkdir", Path: "blue,u1.vm", Err: errno}
		if got, want := explain(said), sdk.NewError(reason, said.Error()); !reflect.DeepEqual(got, want) {
			t.Errorf("%v became %v, want the reason %s", said, got, reason)
		}
	}
	for _, other := range []error{nil, syscall.EIO, context.Canceled} {
		if got := explain(other); got != other { //nolint:errorlint // the very same
			t.Errorf("%v became %v", other, got)
		}
	}
}
