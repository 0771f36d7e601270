package canaries

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	driverName = "sawmill"
	prefix     = "sawmill:///"
	// patience bounds waits for what comes at once when the code is right.
	patience = 20 * time.Second
)

// The canaries. state is one that the driver never repeats: it is not to be printed by either side.
const (
	secret   = `s3cr3t/ca+nary "&=?`
	token    = "abcdef.c4n4ry6789abcdef"
	state    = "st4te-c4n4ry-5f2a9c"
	userData = "#cloud-config\nruncmd:\n- [kubeadm, join, --token, " + token + "]\n"
)

// disguises are what a driver says of what it was told.
func disguises() map[string]string {
	return map[string]string{
		"raw": secret, "quoted": fmt.Sprintf("%q", secret), "base64": base64.StdEncoding.EncodeToString([]byte(secret)),
		"basic auth": base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
		"url":        url.QueryEscape(secret), "hex": hex.EncodeToString([]byte(secret)),
		"user data": userData, "its token": token,
	}
}

// mustNotTell looks for every canary, in every form.
func mustNotTell(t *testing.T, who, text string) {
	t.Helper()
	for _, canary := range []string{secret, token, state} {
		basic := base64.RawStdEncoding.EncodeToString([]byte("user:" + canary))
		for form, hidden := range map[string]string{
			"raw": canary, "quoted": strings.Trim(fmt.Sprintf("%q", canary), `"`), "url": url.QueryEscape(canary), "path": url.PathEscape(canary),
			"base64": base64.RawStdEncoding.EncodeToString([]byte(canary))[:20], "basic auth": basic[7:24],
			"hex": hex.EncodeToString([]byte(canary)), "HEX": fmt.Sprintf("%X", canary), "bytes": strings.Trim(fmt.Sprint([]byte(canary)), "[]"),
		} {
			if strings.Contains(text, hidden) {
				t.Errorf("%s tells %q, %s:\n%s", who, canary, form, text)
			}
		}
	}
}

// manner is how a driver answers about machines and specs.
type manner struct {
	fail    func() error
	machine func(*driverv1alpha1.Machine)
}

// careless is a driver that repeats what it was told.
type careless struct {
	manner
	unready atomic.Bool
}

func (c *careless) Info() sdk.Info {
	return sdk.Info{Name: driverName, Version: "v1", ProviderIDPrefix: prefix}
}

// answer is the driver's answer about a machine.
func (c *careless) answer(meta *driverv1alpha1.RequestMeta, ref *driverv1alpha1.MachineRef) (*driverv1alpha1.Machine, error) {
	if c.fail != nil {
		return nil, c.fail()
	}
	m := &driverv1alpha1.Machine{
		Ref: ref, ClusterUid: meta.GetClusterUid(), ProviderId: prefix + ref.GetUid(),
		State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING, LastKnownState: []byte(state),
	}
	c.machine(m)
	return m, nil
}

func (c *careless) CreateMachine(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	return c.answer(r.GetMeta(), r.GetMachine())
}

func (c *careless) GetMachineStatus(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	return c.answer(r.GetMeta(), r.GetMachine())
}

func (c *careless) DeleteMachine(_ context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	return c.answer(r.GetMeta(), r.GetMachine())
}

func (c *careless) ListMachines(_ context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	m, err := c.answer(r.GetMeta(), &driverv1alpha1.MachineRef{Namespace: "ns", Name: "other", Uid: "other"})
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.ListMachinesResponse{Machines: []*driverv1alpha1.Machine{m}}, nil
}

func (c *careless) ValidateProviderSpec(
	_ context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	m, err := c.answer(r.GetMeta(), &driverv1alpha1.MachineRef{})
	if err != nil {
		return nil, err
	}
	return &driverv1alpha1.ValidateProviderSpecResponse{
		Violations: []*driverv1alpha1.FieldViolation{{Field: "auth", Description: "no: " + m.GetMessage() + m.GetProviderId()}},
	}, nil
}

func (c *careless) Probe(context.Context) error {
	if !c.unready.Load() {
		return nil
	}
	return errors.New("login with " + secret + " failed")
}

// asked is the machine that goes with the canaries; its Secret also holds what is part of the
// driver's own words.
func asked() wire.Machine {
	return wire.Machine{
		Namespace: "ns", Name: "m", UID: "uid", Spec: []byte(`{"size":"s"}`), LastKnownState: []byte(state),
		Secrets: map[string][]byte{"password": []byte(secret), "user": []byte(secret[:7]), "cloud": []byte(driverName), "token": []byte(token)},
	}
}

func keyOf(m wire.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// told is what core tells people of a call's end.
func told(i *instance.Instance, f *instance.Failure) string {
	text := ""
	if i != nil {
		text = i.Reason + i.Message
	}
	if f != nil {
		text += fmt.Sprintf("%+v %s", *f, f.LastKnownState)
	}
	return text
}

func words(err error) string {
	if failure, is := errors.AsType[*instance.Failure](err); is {
		return told(nil, failure)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// rig is core's client, a driver, and what both have said.
type rig struct {
	careless *careless
	driver   *driver.Driver
	drivers  *driver.Drivers
	registry *prometheus.Registry
	// stopBoth ends both sides and waits for their ends.
	stopBoth           func() error
	notReady           chan struct{}
	coreLog, driverLog speech
}

// start serves a driver of these manners, and connects core to it.
func start(t *testing.T, m manner) *rig {
	t.Helper()
	// A test's own folder has the test's name in it, which may be too long for a socket.
	dir, err := os.MkdirTemp("", "canaries")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &rig{careless: &careless{manner: m}, registry: prometheus.NewRegistry(), notReady: make(chan struct{})}
	endpoint := "unix://" + filepath.Join(dir, "d.sock")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() {
		served <- sdk.Serve(ctx, r.careless, sdk.Options{
			Endpoint: endpoint, Log: slog.New(slog.NewTextHandler(&r.driverLog, &slog.HandlerOptions{Level: slog.LevelDebug - 100})),
		})
	}()
	r.connect(t, endpoint)
	go func() { ran <- r.drivers.Start(ctx) }()
	r.stopBoth = sync.OnceValue(func() error {
		stop()
		return errors.Join(<-ran, <-served)
	})
	t.Cleanup(func() { _ = r.stopBoth() })
	return r
}

func (r *rig) connect(t *testing.T, endpoint string) {
	t.Helper()
	var once sync.Once
	log := funcr.New(func(prefix, args string) {
		_, _ = r.coreLog.Write([]byte(prefix + " " + args + "\n"))
		if strings.Contains(args, "driver is not ready") {
			once.Do(func() { close(r.notReady) })
		}
	}, funcr.Options{Verbosity: 100})
	drivers, err := driver.New(driver.Config{
		ClusterUID: "cluster-1", Log: log, Registry: r.registry, ReconnectDelay: time.Millisecond, ProbeInterval: 5 * time.Millisecond,
		Polling: poller.Polling{Interval: time.Millisecond},
	}, []driver.Target{{Name: driverName, Address: endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	r.drivers = drivers
	if r.driver, err = drivers.For(driverName); err != nil {
		t.Fatal(err)
	}
}

// await reads wake-ups until done, which is asked first and after each.
func (r *rig) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for !done() {
		select {
		case <-r.drivers.Events():
		case <-timeout:
			t.Fatalf("%s did not come about; core says:\n%s", what, r.coreLog.String())
		}
	}
}

func (r *rig) stop(t *testing.T) {
	t.Helper()
	if err := r.stopBoth(); err != nil {
		t.Error(err)
	}
}

func (r *rig) metrics(t *testing.T) string {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil || len(families) == 0 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
	return fmt.Sprint(families)
}

// speech are what somebody has said so far.
type speech struct {
	mu  sync.Mutex
	all strings.Builder
}

func (w *speech) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(text)
}

func (w *speech) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
