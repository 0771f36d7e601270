package deployment

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Variable is the environment variable that names the file of the cloud to use.
const Variable = "MILLWRIGHT_OPENSTACK"

// Deployment is a cloud. All that a test breaks is mended when the test is over.
type Deployment struct {
	// Release is OpenStack's, in small letters.
	Release string `json:"release"`
	// IdentityEndpoint, Region and Password let the users demo, alt and admin in, each to the
	// project of its name.
	IdentityEndpoint string `json:"identityEndpoint"`
	Region           string `json:"region"`
	Password         string `json:"password"`

	FaultProxy  string   `json:"faultProxy"`
	Faults      string   `json:"faults"`
	Scripts     string   `json:"scripts"`
	Environment []string `json:"environment"`
}

// Open returns the cloud that the environment names, and skips the test if it names none.
func Open(t testing.TB) *Deployment {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skip(Variable + " does not name a cloud's environment.json: see make test-openstack")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &Deployment{}
	if err := json.Unmarshal(raw, d); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return d
}

// Stop ends a process, as ctl.sh calls it; Kill does so at once, Pause stops it where it stands. It
// is there again when the test is over, or after Up or Resume.
func (d *Deployment) Stop(t testing.TB, process string) { d.disturb(t, "stop", process, d.Up) }

// Kill ends a process at once. See Stop.
func (d *Deployment) Kill(t testing.TB, process string) { d.disturb(t, "kill", process, d.Up) }

// Pause stops a process where it stands. See Stop.
func (d *Deployment) Pause(t testing.TB, process string) {
	d.disturb(t, "pause", process, func(t testing.TB) { d.Resume(t, process) })
}

func (d *Deployment) disturb(t testing.TB, how, process string, mend func(testing.TB)) {
	t.Helper()
	t.Cleanup(func() { mend(t) })
	d.script(t, "ctl.sh", how, process)
}

// Resume lets a process go on.
func (d *Deployment) Resume(t testing.TB, process string) {
	t.Helper()
	d.script(t, "ctl.sh", "resume", process)
}

// Up starts what does not run, and waits until it answers.
func (d *Deployment) Up(t testing.TB) {
	t.Helper()
	d.script(t, "up.sh")
}

func (d *Deployment) script(t testing.TB, name string, arguments ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(d.Scripts, name), arguments...)
	cmd.Env = append(os.Environ(), d.Environment...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, arguments, err, output)
	}
}
