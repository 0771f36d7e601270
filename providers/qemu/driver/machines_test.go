package driver_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/driver"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
)

// reason is what an error says in the contract's terms.
func reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			return info.GetReason()
		}
	}
	return ""
}

// A VM that was killed is gone: core replaces what is FAILED and has no id.
func TestKilledVMIsGone(t *testing.T) {
	s := newScene(t)
	if id := s.running("killed", small).GetProviderId(); !strings.HasPrefix(id, "qemu://") || !strings.HasSuffix(id, "/killed") {
		t.Errorf("the VM is called %q", id)
	}
	if err := s.process("killed").Kill(); err != nil {
		t.Fatal(err)
	}
	s.until("the VM is FAILED", func() bool {
		now, err := s.get("killed")
		if err != nil {
			t.Fatal(err)
		}
		return now.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED && now.GetReason() == "VMGone" && now.GetProviderId() == ""
	})
	now, err := s.create("killed", small)
	if err != nil || now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
		t.Errorf("a late create of a VM that has run is answered %v (%v)", now, err)
	}
	if n := len(processes(t, "killed")); n > 0 {
		t.Errorf("it has %d processes again", n)
	}
	s.gone("killed")
}

// A VM that ended by itself was switched off: it is there, and keeps its id.
func TestVMThatWasSwitchedOffIsStopped(t *testing.T) {
	s := newScene(t)
	id := s.running("off", small).GetProviderId()
	// QEMU ends in good order, as when the system in the VM switches it off.
	if err := s.process("off").Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	s.until("the VM is STOPPED", func() bool {
		now, err := s.get("off")
		if err != nil {
			t.Fatal(err)
		}
		return now.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_STOPPED && now.GetProviderId() == id
	})
	s.gone("off")
}

// A VM of which nobody hears the power button is killed when the grace is over, and no sooner.
func TestVMThatDoesNotShutDownIsKilled(t *testing.T) {
	const grace = time.Second
	s := newScene(t, func(o *driver.Options) { o.ShutdownGrace = grace })
	s.running("deaf", small)
	began := time.Now()
	s.gone("deaf")
	if took := time.Since(began); took < grace {
		t.Errorf("it was gone after %s, want its grace of %s", took, grace)
	}
}

// A VM that is being deleted is not made again.
func TestCreateWaitsForDelete(t *testing.T) {
	s := newScene(t, func(o *driver.Options) { o.ShutdownGrace = time.Hour })
	s.running("going", small)
	if now := s.remove("going"); now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_DELETING {
		t.Fatalf("after a delete it is %s", now.GetState())
	}
	if _, err := s.create("going", small); reason(err) != "OPERATION_PENDING" {
		t.Errorf("a create of it is answered %v", err)
	}
}

// A VM that QEMU cannot start is FAILED, in QEMU's words, and the next create tries again.
func TestVMThatCannotStartIsFailed(t *testing.T) {
	port := listen(t)
	s := newScene(t)
	spec := forwarded(port)
	if _, err := s.create("busy", spec); err != nil {
		t.Fatal(err)
	}
	s.until("the VM is FAILED", func() bool {
		now, err := s.get("busy")
		if err != nil {
			t.Fatal(err)
		}
		return now.GetReason() == "StartFailed" && strings.Contains(now.GetMessage(), "forwarding")
	})
	s.running("busy", small) // what never ran can be asked for otherwise
	s.gone("busy")
}

// The host is not promised to more VMs than it has room for.
func TestQuotas(t *testing.T) {
	s := newScene(t, func(o *driver.Options) { o.MemoryMiB = 160 })
	port := freePort(t)
	s.running("first", forwarded(port))
	if _, err := s.create("second", forwarded(port)); reason(err) != "QUOTA_EXCEEDED" || !strings.Contains(err.Error(), "ns/machine-first") {
		t.Errorf("a port for the second time: %v", err)
	}
	s.running("second", small)
	if _, err := s.create("third", small); reason(err) != "QUOTA_EXCEEDED" || !strings.Contains(err.Error(), "--memory") {
		t.Errorf("more memory than there is: %v", err)
	}
	s.gone("first")
	s.running("third", small)
}

// What a VM runs at its first boot is secret: only its seed holds it, and only the owner reads
// that.
func TestUserDataIsKept(t *testing.T) {
	s := newScene(t)
	s.running("secret", small)
	holders := 0
	err := filepath.WalkDir(s.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte("opensesame")) {
			holders++
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 || d.Name() != "seed.iso" {
				t.Errorf("%s has the mode %s (%v)", path, info.Mode(), err)
			}
		}
		return err
	})
	if err != nil || holders != 1 {
		t.Errorf("%d files hold the user data, want the seed (%v)", holders, err)
	}
	pid := s.process("secret").Pid
	for _, name := range []string{"cmdline", "environ"} {
		if raw, err := os.ReadFile(filepath.Join("/proc", itoa(pid), name)); err != nil || bytes.Contains(raw, []byte("opensesame")) {
			t.Errorf("the %s of QEMU holds the user data (%v)", name, err)
		}
	}
}

// An id of another host says that the driver looks at other VMs than core means.
func TestVMOfAnotherHostIsNotGone(t *testing.T) {
	s := newScene(t)
	id := "qemu://elsewhere/uid"
	_, err := s.GetMachineStatus(t.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta(), Machine: ref("uid"), Provider: provider(small), ProviderId: id})
	if reason(err) != "ACCOUNT_CHANGED" {
		t.Errorf("its status is %v", err)
	}
	_, err = s.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: meta(), Machine: ref("uid"), Provider: provider(small), ProviderId: id})
	if reason(err) != "ACCOUNT_CHANGED" {
		t.Errorf("its delete is %v", err)
	}
}

// The console is what the VM wrote: its newest part.
func TestConsole(t *testing.T) {
	s := newScene(t)
	s.running("talks", small)
	request := &driverv1alpha1.GetConsoleOutputRequest{Meta: meta(), Machine: ref("talks"), Provider: provider(small)}
	s.until("the firmware says its name", func() bool {
		answer, err := s.GetConsoleOutput(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(answer.GetOutput(), []byte("SeaBIOS"))
	})
	path := filepath.Join(s.state, "machines", "talks", "console.log")
	if err := os.WriteFile(path, append(bytes.Repeat([]byte("x"), 1<<20), "the end"...), 0o600); err != nil {
		t.Fatal(err)
	}
	answer, err := s.GetConsoleOutput(t.Context(), request)
	if err != nil || len(answer.GetOutput()) != 64<<10 || !bytes.Contains(answer.GetOutput(), []byte("the end")) {
		t.Errorf("of a long console come %d bytes (%v)", len(answer.GetOutput()), err)
	}
	request.Machine = ref("nobody")
	if _, err := s.GetConsoleOutput(t.Context(), request); reason(err) != "MACHINE_NOT_FOUND" {
		t.Errorf("the console of no VM: %v", err)
	}
}

// A uid becomes the name of a folder: what is no uid gets none.
func TestUIDIsNoPath(t *testing.T) {
	s := newScene(t)
	for _, uid := range []string{"..", "a/b", "../../etc", "-x", ".", strings.Repeat("x", 64)} {
		if _, err := s.create(uid, small); reason(err) != "SPEC_INVALID" {
			t.Errorf("a create of %q: %v", uid, err)
		}
		if _, err := s.get(uid); reason(err) != "MACHINE_NOT_FOUND" {
			t.Errorf("the status of %q: %v", uid, err)
		}
		if now := s.remove(uid); now != nil {
			t.Errorf("a delete of %q: %v", uid, now)
		}
	}
}

// The power button is pressed on a socket whose path is longer than a socket's may be.
func TestPowerButton(t *testing.T) {
	s := newScene(t)
	s.running("button", small)
	store, err := vm.OpenStore(s.state)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Folder("button").PowerDown(t.Context()); err != nil {
		t.Error(err)
	}
	s.gone("button")
	if err := store.Folder("button").PowerDown(t.Context()); err == nil {
		t.Error("a VM that is gone has a power button")
	}
}
