package examplenode

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// source is the driver's folder.
const source = "../../providers/example-node"

// scene is a cloud, which is a folder, and a place for sockets.
type scene struct {
	*testing.T
	dir string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	// Not t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &scene{T: t, dir: dir}
}

func (s *scene) cloud() string { return filepath.Join(s.dir, "cloud") }

func (s *scene) socket(name string) string { return filepath.Join(s.dir, name+".sock") }

// logFile is where a driver's log is written to.
func (s *scene) logFile(name string) string { return filepath.Join(s.dir, name+".log") }

// files is the folder of drivers for temporary files.
func (s *scene) files() string { return filepath.Join(s.dir, "files") }

func (s *scene) endpoint(name string) string { return "unix://" + s.socket(name) }

// process is a driver that runs.
type process struct {
	*exec.Cmd
	// ended is closed when it has written its last line.
	ended chan struct{}
	log   bytes.Buffer
}

// start runs the driver on the scene's cloud, and waits until it serves.
func (s *scene) start(name string) *process {
	s.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		s.Fatal("the example driver needs Node.js 18 or later: install nodejs and npm, then run `make example-node`")
	}
	main := filepath.Join(source, "dist", "main.js")
	if _, err := os.Stat(main); err != nil {
		s.Fatalf("the example driver is not built: run `make example-node` (%v)", err)
	}
	p := &process{
		Cmd:   exec.Command(node, main, "--endpoint", s.endpoint(name), "--cloud", s.cloud(), "--latency", "100"),
		ended: make(chan struct{}),
	}
	if err := os.MkdirAll(s.files(), 0o700); err != nil {
		s.Fatal(err)
	}
	p.Env = append(os.Environ(), "TMPDIR="+s.files())
	log, err := os.Create(s.logFile(name))
	if err != nil {
		s.Fatal(err)
	}
	stderr, err := p.StderrPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := p.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		_ = p.Wait()
	})
	serving := make(chan struct{})
	go func() {
		defer close(p.ended)
		defer func() { _ = log.Close() }()
		for lines, waiting := bufio.NewScanner(stderr), true; lines.Scan(); {
			p.log.WriteString(lines.Text() + "\n")
			_, _ = log.WriteString(lines.Text() + "\n") // what is missing there is missing for the harness alone
			if waiting && strings.Contains(lines.Text(), `"message":"serving"`) {
				close(serving)
				waiting = false
			}
		}
	}()
	select {
	case <-serving:
	case <-p.ended:
		s.Fatalf("the driver ended before it served:\n%s", p.log.String())
	}
	return p
}

// machines returns a client of the driver.
func (s *scene) machines(name string) driverv1alpha1.MachineServiceClient {
	s.Helper()
	conn, err := grpc.NewClient(s.endpoint(name), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return driverv1alpha1.NewMachineServiceClient(conn)
}

func createRequest() *driverv1alpha1.CreateMachineRequest {
	return &driverv1alpha1.CreateMachineRequest{
		Meta:     &driverv1alpha1.RequestMeta{RequestId: "request", ClusterUid: "cluster"},
		Machine:  &driverv1alpha1.MachineRef{Namespace: "default", Name: "machine", Uid: "m1"},
		Provider: &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"size":"small","image":"ubuntu-24.04"}`)},
	}
}

// Two processes that share a cloud are asked for the same machine many times at once: there is one
// VM.
func TestDRV2_ExampleInTypeScriptTwice(t *testing.T) {
	s := newScene(t)
	s.start("one")
	s.start("two")
	var wait sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for _, machines := range []driverv1alpha1.MachineServiceClient{s.machines("one"), s.machines("two")} {
		for range 20 {
			wait.Go(func() {
				answer, err := machines.CreateMachine(t.Context(), createRequest())
				if err != nil {
					t.Errorf("create: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[answer.GetMachine().GetProviderId()]++
			})
		}
	}
	wait.Wait()
	found, err := os.ReadDir(filepath.Join(s.cloud(), "accounts", "default"))
	if err != nil || len(found) != 1 || len(ids) != 1 {
		t.Errorf("the answers name %v, and the cloud holds %v (%v); want one VM", ids, found, err)
	}
}

// A driver that is told to end does, with its socket. One that was killed leaves a socket that the
// next takes over. A second one on a socket that is served ends at once.
func TestDRV2_ExampleInTypeScriptStops(t *testing.T) {
	s := newScene(t)
	first := s.start("driver")
	if info, err := os.Stat(s.socket("driver")); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket is %v (%v), want the mode 0660", info, err)
	}
	second := exec.Command(first.Path, first.Args[1:]...)
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "another process serves") {
		t.Errorf("a second driver on the socket ended with %v:\n%s", err, out)
	}
	if _, err := s.machines("driver").CreateMachine(t.Context(), createRequest()); err != nil {
		t.Errorf("create, after a second driver was started: %v", err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	third := s.start("driver")
	// The connection stays open: that does not hold it up.
	if _, err := s.machines("driver").CreateMachine(t.Context(), createRequest()); err != nil {
		t.Errorf("create, after a driver was killed: %v", err)
	}
	if err := third.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-third.ended
	if err := third.Wait(); err != nil {
		t.Errorf("told to end, the driver ended with %v:\n%s", err, third.log.String())
	}
	if _, err := os.Lstat(s.socket("driver")); !os.IsNotExist(err) {
		t.Errorf("the socket is still there (%v)", err)
	}
}

// What is secret comes up neither on disk nor in the log, whatever becomes of the call.
func TestDRV2_ExampleInTypeScriptKeepsSecrets(t *testing.T) {
	const canary = "canary-e3b0c44298fc1c149afbf4c8996fb924"
	s := newScene(t)
	driver := s.start("driver")
	s.addAccount(canary)
	machines := s.machines("driver")
	for _, tc := range []struct {
		want   codes.Code
		change func(*driverv1alpha1.CreateMachineRequest)
	}{
		{codes.OK, func(*driverv1alpha1.CreateMachineRequest) {}},
		{codes.AlreadyExists, func(r *driverv1alpha1.CreateMachineRequest) { r.Machine.Name = "another" }},
		{codes.InvalidArgument, func(r *driverv1alpha1.CreateMachineRequest) {
			r.Provider.ProviderSpec = []byte(`{"size":"small","token":"` + canary + `"`)
		}},
		{codes.InvalidArgument, func(r *driverv1alpha1.CreateMachineRequest) {
			r.Provider.ProviderSpec = []byte(`{"size":"small","token":["` + canary + `"]}`)
		}},
		{codes.Unauthenticated, func(r *driverv1alpha1.CreateMachineRequest) { r.Provider.Secrets["token"] = []byte(canary + "?") }},
	} {
		r := createRequest()
		r.UserData = []byte(canary)
		r.Provider.Secrets = map[string][]byte{"token": []byte(canary)}
		tc.change(r)
		_, err := machines.CreateMachine(t.Context(), r)
		if status.Code(err) != tc.want || strings.Contains(status.Convert(err).Proto().String(), canary) {
			t.Errorf("a create ended with %v, want %s and no secret", err, tc.want)
		}
	}
	if err := driver.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-driver.ended
	places := map[string]string{"the log": driver.log.String()}
	err := filepath.WalkDir(s.cloud(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		places[path] = string(raw)
		return err
	})
	if err != nil || len(places) < 3 {
		t.Fatalf("looked into %d places: %v", len(places), err)
	}
	for place, text := range places {
		for _, form := range []string{canary, hex.EncodeToString([]byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds a secret", place)
			}
		}
	}
}

// The driver tells what somebody did to a VM behind its back. While the cloud is away, it tells
// nobody that a VM is gone.
func TestDRV2_ExampleInTypeScriptSeesChanges(t *testing.T) {
	s := newScene(t)
	s.start("driver")
	machines := s.machines("driver")
	if _, err := machines.CreateMachine(t.Context(), createRequest()); err != nil {
		t.Fatal(err)
	}
	accounts := filepath.Join(s.cloud(), "accounts")
	vms, err := filepath.Glob(filepath.Join(accounts, "default", "*"))
	if err != nil || len(vms) != 1 {
		t.Fatalf("the cloud holds %v (%v), want one VM", vms, err)
	}
	r := createRequest()
	for _, tc := range []struct {
		what   string
		change func() error
		state  driverv1alpha1.MachineState
		code   codes.Code
	}{
		{
			"stopped", func() error { return os.WriteFile(filepath.Join(vms[0], "stopped"), nil, 0o600) },
			driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, codes.OK,
		},
		{
			"failed", func() error {
				return os.WriteFile(filepath.Join(vms[0], "failed"), []byte("The saw blade is blunt.\n"), 0o600)
			},
			driverv1alpha1.MachineState_MACHINE_STATE_FAILED, codes.OK,
		},
		{"away", func() error { return os.Rename(accounts, accounts+".away") }, 0, codes.Unavailable},
		{"back", func() error { return os.Rename(accounts+".away", accounts) }, driverv1alpha1.MachineState_MACHINE_STATE_FAILED, codes.OK},
		{"gone", func() error { return os.RemoveAll(vms[0]) }, 0, codes.NotFound},
	} {
		if err := tc.change(); err != nil {
			t.Fatal(err)
		}
		answer, err := machines.GetMachineStatus(t.Context(), &driverv1alpha1.GetMachineStatusRequest{
			Meta: r.GetMeta(), Machine: r.GetMachine(), Provider: r.GetProvider(),
		})
		if status.Code(err) != tc.code || answer.GetMachine().GetState() != tc.state {
			t.Errorf("%s: the status is %v (%v)", tc.what, answer.GetMachine(), err)
		}
		if message := answer.GetMachine().GetMessage(); tc.what == "failed" && message != "The saw blade is blunt." {
			t.Errorf("the cloud's words have become %q", message)
		}
	}
}

// What a create that was killed has left is gone with its machine, and nothing else is.
func TestDRV2_ExampleInTypeScriptSweeps(t *testing.T) {
	s := newScene(t)
	s.start("driver")
	machines := s.machines("driver")
	answer, err := machines.CreateMachine(t.Context(), createRequest())
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimPrefix(answer.GetMachine().GetProviderId(), "example-node:///")
	account := filepath.Join(s.cloud(), "accounts", "default")
	for _, draft := range []string{id + ".mine", strings.Repeat("0", len(id)) + ".theirs"} {
		if err := os.Mkdir(filepath.Join(account, draft), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := createRequest()
	if _, err := machines.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{
		Meta: r.GetMeta(), Machine: r.GetMachine(), Provider: r.GetProvider(),
	}); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(account, "*.*")); err != nil || len(left) != 1 || filepath.Ext(left[0]) != ".theirs" {
		t.Errorf("left are %v (%v)", left, err)
	}
}
