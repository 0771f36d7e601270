package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/test/tier"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

// Besides the sidecar the manager has two more drivers of the same cloud: one that it starts
// itself, and one on TCP.
const (
	started = "started"
	remote  = "remote"
)

// Who the two ends of TCP are.
const (
	coreIdentity   = "spiffe://trust.example/core"
	remoteIdentity = "driver.example"
)

// moreDrivers are the manager's flags for them, and where the one on TCP serves.
func moreDrivers(dir string) (flags []string, address string, err error) {
	driver, err := filepath.Abs(filepath.Join(commandDir, "millwright-driver-fake"))
	if err != nil {
		return nil, "", err
	}
	if address, err = belowOutgoing(); err != nil {
		return nil, "", err
	}
	args := url.Values{"arg": {"--name=" + started, "--cloud=" + cloudSocket(dir)}}
	return []string{
		"--driver=" + late + "=" + lateEndpoint(dir),
		"--driver=" + started + "=exec://" + driver + "?" + args.Encode(),
		"--driver=" + remote + "=dns:///" + address + "?" + url.Values{"tls": {tlsFolder(dir, "core")}, "identity": {remoteIdentity}}.Encode(),
	}, address, nil
}

// belowOutgoing returns an address that nobody listens on, and whose port no connection from this
// machine gets meanwhile: kernels give them ports from 32768 on, local clusters have those below
// 30000.
func belowOutgoing() (string, error) {
	for port := 30000; port < 32768; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return listener.Addr().String(), listener.Close()
		}
	}
	return "", errors.New("all ports from 30000 to 32767 are in use")
}

func cloudSocket(dir string) string { return "unix://" + filepath.Join(dir, "cloud.sock") }

func tlsFolder(dir, whose string) string { return filepath.Join(dir, "tls-"+whose) }

// certify gives both ends of TCP certificates of a new CA.
func (u *user) certify() {
	u.t.Helper()
	ca, err := mtlstest.NewAuthority()
	if err != nil {
		u.t.Fatal(err)
	}
	for whose, identity := range map[string]string{"core": coreIdentity, remote: remoteIdentity} {
		folder := tlsFolder(u.dir, whose)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			u.t.Fatal(err)
		}
		if err := ca.Issue(folder, identity, time.Hour, ca); err != nil {
			u.t.Fatal(err)
		}
	}
}

// serveRemote starts the driver on TCP, until the test ends or the returned function is called,
// which ends it gracefully.
func (u *user) serveRemote() (stop func()) {
	u.t.Helper()
	log, err := os.OpenFile(filepath.Join(u.dir, "logs", "remote.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		u.t.Fatal(err)
	}
	command := exec.Command(filepath.Join(commandDir, "millwright-driver-fake"), "--name="+remote, "--endpoint=tcp://"+u.remote, "--cloud="+cloudSocket(u.dir))
	command.Env = append(os.Environ(), sdk.TLSFolderVariable+"="+tlsFolder(u.dir, remote), sdk.TLSClientVariable+"="+coreIdentity)
	command.Stderr = log
	if err := command.Start(); err != nil {
		u.t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			u.t.Errorf("the driver on TCP ended with %v", err)
		}
		_ = log.Close()
	}
	u.t.Cleanup(stop)
	return stop
}

// provider is a MachineDeployment's change to another driver.
func provider(name string) map[string]string { return map[string]string{"provider": name} }

// Drivers as a sidecar, on TCP and as a process of the manager's serve the same cluster.
func TestDRV1_MixedTransports(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.certify()
	stop := u.serveRemote()
	for _, name := range []string{"fake", started, remote} {
		u.apply(deployment(name, 2, provider(name)))
	}
	u.awaitRunning(6)
	u.checkOneVMEach()
	u.kubectl("delete", "machinedeployments", "--all", "--wait=false")
	u.awaitGone()
	stop()
}

// A driver that the manager has started is killed again and again while machines are made: each
// gets one VM.
func TestDRV1_AStartedDriverIsKilledAgainAndAgain(t *testing.T) {
	tier.Long(t, "it makes 60 machines on a slow cloud")
	t.Parallel()
	const machines, kills = 60, 5
	u := newUser(t)
	u.slowCloud()
	before := u.vmsCreated()
	u.apply(deployment("killed", machines, provider(started)))
	for range kills {
		u.awaitMoreVMs(5)
		for _, pid := range u.startedDrivers() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatalf("kill the driver: %v", err)
			}
		}
	}
	u.awaitRunning(machines)
	u.checkOneVMEach()
	if n := u.vmsCreated() - before; n != machines {
		t.Errorf("the cloud has made %d VMs, want %d", n, machines)
	}
}

// vmsCreated counts the VMs that the cloud has ever made.
func (u *user) vmsCreated() int64 {
	u.t.Helper()
	totals, err := u.Backend().GetTotals(u.t.Context(), &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		u.t.Fatalf("ask the cloud for its totals: %v", err)
	}
	return totals.GetVmsCreated()
}

// awaitMoreVMs waits until the cloud has made n more VMs: until the driver is about its work.
func (u *user) awaitMoreVMs(n int64) {
	u.t.Helper()
	u.awaitVMs(u.vmsCreated() + n)
}

// awaitVMs waits until the cloud has made so many VMs as long as it lives, and returns how many it
// has made then.
func (u *user) awaitVMs(want int64) int64 {
	u.t.Helper()
	var made int64
	eventually(u.t, fmt.Sprintf("%d VMs", want), func(context.Context) error {
		if made = u.vmsCreated(); made < want {
			return fmt.Errorf("the cloud has made %d", made)
		}
		return nil
	})
	return made
}

// No driver outlives a manager that is killed, and the next manager starts its own.
func TestDRV1_NoDriverOutlivesItsManager(t *testing.T) {
	tier.Long(t, "it kills the manager")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("first", 1, provider(started)))
	u.awaitRunning(1)
	if len(u.startedDrivers()) == 0 {
		t.Fatal("the manager has started no driver")
	}
	u.kill([]string{stack.Manager})
	killed := time.Now()
	eventually(t, "the driver's end", func(context.Context) error {
		if left := u.startedDrivers(); len(left) > 0 {
			return fmt.Errorf("drivers live: %v", left)
		}
		return nil
	})
	t.Logf("no driver process is left %s after the manager was killed", time.Since(killed).Round(time.Millisecond))
	u.revive([]string{stack.Manager})
	u.apply(deployment("second", 1, provider(started)))
	u.awaitRunning(2)
}

// startedDrivers are the processes of the driver that the manager has started: one for machines,
// and one for the webhook's questions.
func (u *user) startedDrivers() []int {
	u.t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		u.t.Fatal(err)
	}
	var pids []int
	for _, path := range commands {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte("\x00--name="+started+"\x00")) || !bytes.Contains(raw, []byte(u.dir)) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			u.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// Certificates and CA change while machines are made over TCP, and no call fails. A driver that is
// started afterwards is reached with the new ones.
func TestDRV1_CertificatesRotateUnderLoad(t *testing.T) {
	tier.Long(t, "it makes 30 machines on a slow cloud")
	t.Parallel()
	u := newUser(t)
	u.certify()
	stop := u.serveRemote()
	u.apply(deployment("first", 1, provider(remote)))
	u.awaitRunning(1)
	before := u.failedCalls(remote)
	u.slowCloud()
	u.kubectl("scale", "machinedeployment", "first", "--replicas=30")
	for range 3 {
		u.awaitMoreVMs(3)
		u.certify()
	}
	u.awaitRunning(30)
	u.checkOneVMEach()
	for call, n := range u.failedCalls(remote) {
		if n > before[call] {
			t.Errorf("%d calls failed: %s", n-before[call], call)
		}
	}
	stop()
	stop = u.serveRemote()
	u.kubectl("delete", "machinedeployments", "--all", "--wait=false")
	u.awaitGone()
	stop()
}

// An operator sees of each driver whether it takes calls, and if not, why and since when.
func TestDRV1_DriversAreListed(t *testing.T) {
	tier.Long(t, "it stops the driver and waits for that to be told")
	t.Parallel()
	u := newUser(t)
	u.awaitDriver("fake", `True +\S+ +\S+ +unix:///\S+/driver.sock +\S*LIST`)
	u.awaitDriver(started, `True +\S+ +\S+ +exec:///\S+/millwright-driver-fake +\S*LIST`)
	u.awaitDriver(remote, `False +\S+ +\S+ +dns:///\S+ .* the driver is not connected`)
	u.kill([]string{stack.Driver})
	u.awaitDriver("fake", `False +\S+ +\S+ +unix:///\S+/driver.sock +\S*LIST.* the driver is not connected`)
	u.revive([]string{stack.Driver})
	u.awaitDriver("fake", `True `)
	if out, err := u.plugin("drivers"); err == nil || !strings.Contains(out, "--namespace") {
		t.Errorf("in a namespace without a manager: %v\n%s", err, out)
	}
}

// awaitDriver waits until the driver's line in the list of drivers is as the pattern says.
func (u *user) awaitDriver(name, pattern string) {
	u.t.Helper()
	line := regexp.MustCompile(`(?m)^` + name + ` +` + pattern)
	eventually(u.t, "driver "+name+" in the list", func(context.Context) error {
		out, err := u.plugin("drivers", "--namespace", "millwright-system")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if !line.MatchString(out) {
			return fmt.Errorf("want %s in:\n%s", line, out)
		}
		return nil
	})
}

// failedCalls counts the calls of a driver that the manager saw fail, by method and code. That the
// driver knows nothing of a machine is an answer.
func (u *user) failedCalls(name string) map[string]uint64 {
	u.t.Helper()
	failed := map[string]uint64{}
	for call, n := range u.driverCalls(name) {
		if call.code != "OK" && call.code != "NotFound" {
			failed[call.method+" "+call.code] = n
		}
	}
	return failed
}

// driverCall is a kind of call of a driver.
type driverCall struct{ method, code string }

// driverCalls counts the calls of a driver that have ended, as the manager saw them.
func (u *user) driverCalls(name string) map[driverCall]uint64 {
	u.t.Helper()
	families, err := u.Metrics(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	calls := map[driverCall]uint64{}
	for _, m := range families["millwright_driver_call_duration_seconds"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["driver"] == name {
			calls[driverCall{labels["method"], labels["code"]}] += m.GetHistogram().GetSampleCount()
		}
	}
	return calls
}
