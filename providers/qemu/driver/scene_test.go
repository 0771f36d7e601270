package driver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/driver"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk/rig"
)

// scene is a host with QEMU, and a driver of it over the wire. Its VMs have no system: they stay in
// their firmware.
type scene struct {
	*testing.T

	state   string
	options driver.Options
	driver  *driver.Driver
	driverv1alpha1.MachineServiceClient

	specs driverv1alpha1.ProviderSpecServiceClient
}

// small is a VM that costs little.
const small = `{"image": "empty.raw", "memory": "64Mi", "cpus": 1}`

func newScene(t *testing.T, change ...func(*driver.Options)) *scene {
	t.Helper()
	for _, name := range []string{"qemu-system-x86_64", "qemu-img"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("QEMU is not installed: " + err.Error())
		}
	}
	images := t.TempDir()
	if err := os.WriteFile(filepath.Join(images, "empty.raw"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	// Longer than a socket's path may be.
	state := filepath.Join(t.TempDir(), "a-folder-whose-name-alone-is-nearly-as-long-as-the-path-of-a-unix-socket-may-be-and-then-there-is-more")
	s := &scene{T: t, state: state, options: driver.Options{
		Host: vm.Host{QEMU: "qemu-system-x86_64", QEMUImg: "qemu-img", Images: vm.Images(images), Accelerator: vm.TCG},
		Name: "qemu", Version: "test", MemoryMiB: 1024,
	}}
	for _, one := range change {
		one(&s.options)
	}
	store, err := vm.OpenStore(state)
	if err != nil {
		t.Fatal(err)
	}
	s.driver = driver.New(t.Context(), store, s.options)
	conn := rig.Start(t, s.driver)
	s.MachineServiceClient, s.specs = driverv1alpha1.NewMachineServiceClient(conn), driverv1alpha1.NewProviderSpecServiceClient(conn)
	t.Cleanup(s.killAll)
	return s
}

// killAll ends the VMs that a test has left.
func (s *scene) killAll() {
	store, err := vm.OpenStore(s.state)
	if err != nil {
		s.Error(err)
		return
	}
	vms, err := store.VMs()
	if err != nil {
		s.Error(err)
	}
	for _, v := range vms {
		if err := v.Kill(); err != nil {
			s.Error(err)
		}
	}
}

func meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "r", ClusterUid: "cluster"}
}

func ref(uid string) *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "ns", Name: "machine-" + uid, Uid: uid}
}

func provider(spec string) *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(spec)}
}

func (s *scene) create(uid, spec string) (*driverv1alpha1.Machine, error) {
	answer, err := s.CreateMachine(s.Context(), &driverv1alpha1.CreateMachineRequest{
		Meta: meta(), Machine: ref(uid), Provider: provider(spec), UserData: []byte("#cloud-config\n# opensesame\n"),
	})
	return answer.GetMachine(), err
}

func (s *scene) get(uid string) (*driverv1alpha1.Machine, error) {
	answer, err := s.GetMachineStatus(s.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta(), Machine: ref(uid), Provider: provider(small)})
	return answer.GetMachine(), err
}

func (s *scene) remove(uid string) *driverv1alpha1.Machine {
	s.Helper()
	answer, err := s.DeleteMachine(s.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: meta(), Machine: ref(uid), Provider: provider(small)})
	if err != nil {
		s.Fatal(err)
	}
	return answer.GetMachine()
}

// patience is how long a test waits for a process.
const patience = 30 * time.Second

// until waits until a condition holds.
func (s *scene) until(what string, holds func() bool) {
	s.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			s.Fatalf("it did not come about that %s", what)
		}
	}
}

// running creates a VM and waits until it runs.
func (s *scene) running(uid, spec string) *driverv1alpha1.Machine {
	s.Helper()
	var now *driverv1alpha1.Machine
	s.until("the VM runs", func() bool {
		var err error
		if now, err = s.create(uid, spec); err != nil {
			s.Fatal(err)
		}
		return now.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
	})
	return now
}

// gone deletes a VM and waits until nothing of it is left.
func (s *scene) gone(uid string) {
	s.Helper()
	s.until("the VM is gone", func() bool { return s.remove(uid) == nil })
	if _, err := os.Lstat(filepath.Join(s.state, "machines", uid)); !os.IsNotExist(err) {
		s.Errorf("the folder of the VM is left (%v)", err)
	}
}

// process finds the VM's.
func (s *scene) process(uid string) *os.Process {
	s.Helper()
	pids := processes(s.T, uid)
	if len(pids) != 1 {
		s.Fatalf("there are %d processes of the VM", len(pids))
	}
	process, err := os.FindProcess(pids[0])
	if err != nil {
		s.Fatal(err)
	}
	return process
}
