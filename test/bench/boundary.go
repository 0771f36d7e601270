package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/transport"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

// Boundary is what a call to a driver costs, which itself does nothing.
type Boundary struct {
	// Transport is how the driver is reached; "in process" is the same call without any.
	Transport string `json:"transport"`
	// CallsPerSecond are those of 16 callers at once.
	CallsPerSecond float64 `json:"calls_per_second"`
	// P50Microseconds and P99Microseconds are how long a call takes when there is one at a time.
	P50Microseconds float64 `json:"p50_microseconds"`
	P99Microseconds float64 `json:"p99_microseconds"`
}

// AsDriver is the environment variable that makes the benchmark's own executable the driver that
// does nothing: see ServeNothing.
const AsDriver = "MILLWRIGHT_BENCH_AS_DRIVER"

// ServeNothing serves a driver that does nothing until ctx ends.
func ServeNothing(ctx context.Context) error {
	return sdk.Serve(ctx, nothing{}, sdk.Options{Log: slog.New(slog.DiscardHandler)})
}

// nothing is a driver whose machines all run.
type nothing struct{}

func (nothing) Info() sdk.Info {
	return sdk.Info{Name: "nothing", Version: "bench", ProviderIDPrefix: "nothing:///"}
}

func (nothing) CreateMachine(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	return nil, errors.ErrUnsupported
}

func (nothing) GetMachineStatus(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	return &driverv1alpha1.Machine{
		Ref: r.GetMachine(), ClusterUid: r.GetMeta().GetClusterUid(), ProviderId: "nothing:///" + r.GetMachine().GetUid(),
		State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}, nil
}

func (nothing) DeleteMachine(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	return nil, errors.ErrUnsupported
}

// How much is measured.
const (
	boundaryCalls   = 10_000
	boundaryCallers = 16
)

// boundary measures a status call over each transport. executable is one that serves a driver when
// AsDriver is set; what is written lies in dir.
func boundary(ctx context.Context, executable, dir string, calls int) ([]Boundary, error) {
	r := &driverv1alpha1.GetMachineStatusRequest{
		Meta:     &driverv1alpha1.RequestMeta{RequestId: "r", ClusterUid: "c"},
		Machine:  &driverv1alpha1.MachineRef{Namespace: "default", Name: "machine", Uid: "u"},
		Provider: &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"flavor":"small","image":"ubuntu-24.04"}`)},
	}
	direct, err := measureCalls("in process", calls, func() error {
		_, err := nothing{}.GetMachineStatus(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := []Boundary{direct}
	for _, way := range []struct {
		name  string
		serve func(executable, dir string) (address string, stop func(), err error)
	}{{"unix", sidecar}, {"tcp, mTLS", remote}, {"exec, AutoMTLS", launched}} {
		one, err := measureWay(ctx, way.serve, executable, dir, func(machines driverv1alpha1.MachineServiceClient) (Boundary, error) {
			return measureCalls(way.name, calls, func() error {
				_, err := machines.GetMachineStatus(ctx, r)
				return err
			})
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// measureWay measures with a driver that serve has prepared.
func measureWay(
	ctx context.Context, serve func(executable, dir string) (string, func(), error), executable, dir string,
	measure func(driverv1alpha1.MachineServiceClient) (Boundary, error),
) (Boundary, error) {
	address, stop, err := serve(executable, dir)
	if err != nil {
		return Boundary{}, err
	}
	defer stop()
	way, err := transport.Parse(address, transport.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return Boundary{}, err
	}
	var conn *transport.Conn
	for began := time.Now(); ; {
		conn, err = transport.Connect(ctx, way, 5*time.Second)
		if err == nil {
			break
		}
		if !errors.Is(err, transport.ErrAway) || time.Since(began) > 20*time.Second {
			return Boundary{}, err
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return Boundary{}, err
		}
	}
	one, err := measure(driverv1alpha1.NewMachineServiceClient(conn))
	return one, errors.Join(err, conn.Close())
}

// measureCalls measures a call.
func measureCalls(name string, calls int, call func() error) (Boundary, error) {
	for range calls / 10 {
		if err := call(); err != nil {
			return Boundary{}, err
		}
	}
	took := make([]time.Duration, calls)
	for i := range took {
		began := time.Now()
		if err := call(); err != nil {
			return Boundary{}, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	began := time.Now()
	var all sync.WaitGroup
	errs := make([]error, boundaryCallers)
	for caller := range boundaryCallers {
		all.Go(func() {
			for range calls / boundaryCallers {
				if err := call(); err != nil {
					errs[caller] = err
					return
				}
			}
		})
	}
	all.Wait()
	micro := func(d time.Duration) float64 { return round(float64(d)/float64(time.Microsecond), 1) }
	return Boundary{
		Transport: name, CallsPerSecond: round(float64(calls)/time.Since(began).Seconds(), 0),
		P50Microseconds: micro(took[calls/2]), P99Microseconds: micro(took[calls*99/100]),
	}, errors.Join(errs...)
}

func sidecar(executable, dir string) (string, func(), error) {
	endpoint := "unix://" + filepath.Join(dir, "nothing.sock")
	stop, err := process(executable, sdk.EndpointVariable+"="+endpoint)
	return endpoint, stop, err
}

func remote(executable, dir string) (string, func(), error) {
	address, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	ca, err := mtlstest.NewAuthority()
	if err != nil {
		return "", nil, err
	}
	folder := func(whose string) string { return filepath.Join(dir, "tls-"+whose) }
	for _, whose := range []string{"core", "driver"} {
		if err := os.MkdirAll(folder(whose), 0o700); err != nil {
			return "", nil, err
		}
		if err := ca.Issue(folder(whose), whose, time.Hour, ca); err != nil {
			return "", nil, err
		}
	}
	stop, err := process(executable,
		sdk.EndpointVariable+"=tcp://"+address, sdk.TLSFolderVariable+"="+folder("driver"), sdk.TLSClientVariable+"=core")
	return "dns:///" + address + "?" + url.Values{"tls": {folder("core")}, "identity": {"driver"}}.Encode(), stop, err
}

func launched(executable, _ string) (string, func(), error) {
	path, err := filepath.Abs(executable)
	if err != nil {
		return "", nil, err
	}
	if err := os.Setenv(AsDriver, "1"); err != nil {
		return "", nil, err
	}
	return "exec://" + path + "?env=" + AsDriver, func() { _ = os.Unsetenv(AsDriver) }, nil
}

// process starts the driver that does nothing.
func process(executable string, environment ...string) (stop func(), err error) {
	command := exec.Command(executable)
	command.Env = append(append(os.Environ(), AsDriver+"=1"), environment...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}, nil
}
