package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/localcluster/supervisor"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// The names of the processes, for [Stack.Process].
const (
	Cloud    = "cloud"
	Driver   = "driver"
	Manager  = "manager"
	Kubelets = "kubelets"
)

// Who the manager is, in the cluster and in the audit log.
const (
	managerNamespace      = "millwright-system"
	managerServiceAccount = "millwright-manager"
	// ManagerUser is the manager's user name.
	ManagerUser = "system:serviceaccount:" + managerNamespace + ":" + managerServiceAccount
)

// Stack is Millwright running on a cluster of its own. It is safe for concurrent use.
type Stack struct {
	// Cluster is the management cluster: that of the Machines.
	*localcluster.Cluster
	// workload is the cluster of the Nodes; the same one where there is only one.
	workload *localcluster.Cluster
	options  Options
	backend  *grpc.ClientConn
	failed   chan error
	quit     chan struct{}
	restart  sync.WaitGroup
	metrics  metrics
	// environment is for clients of the cloud's own API.
	environment map[string]string
	// vms is the folder of VMs that outlive their driver.
	vms string
}

// Start brings everything up and returns when the manager is ready. A process of Millwright that
// ends by itself is started again, as a kubelet would. One of the control plane that ends is an
// error in [Stack.Failed], unless it is to be revived as well. Whoever ends a process through
// [Stack.Process] starts it again himself. When Start fails, nothing is left running. Ending ctx
// aborts Start and has no bearing afterwards.
func Start(ctx context.Context, o Options) (*Stack, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	management, workload, err := startClusters(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Stack{Cluster: management, workload: workload, options: o, failed: make(chan error, 1), quit: make(chan struct{})}
	if err := s.bringUp(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) bringUp(ctx context.Context) error {
	if err := s.install(ctx); err != nil {
		return err
	}
	if err := s.writeManagerKubeconfigs(ctx); err != nil {
		return err
	}
	health, err := s.SpareAddress()
	if err != nil {
		return err
	}
	webhook, err := s.prepareWebhook()
	if err != nil {
		return err
	}
	if s.metrics, err = s.prepareMetrics(ctx); err != nil {
		return err
	}
	if err := s.launchCloud(); err != nil {
		return err
	}
	if err := s.launchManager(health, webhook); err != nil {
		return err
	}
	s.restart.Add(1)
	go s.restartEnded()
	if err := s.waitForManager(ctx, health); err != nil {
		return err
	}
	return s.installWebhook(ctx, webhook)
}

// launchCloud starts the cloud's driver, and where it is a test cloud also the cloud and, where
// there are Nodes, the simulated kubelets of its VMs.
func (s *Stack) launchCloud() error {
	o := s.options
	state := filepath.Join(o.Dir, "cloud.state")
	hooks := o.endpoint("cloud")
	serving, err := o.Provider.serving(places{
		hooks: hooks, driver: o.endpoint("driver"), state: state, images: filepath.Join(o.BinDir, NodeImageDir), address: s.SpareAddress,
	})
	if err != nil {
		return fmt.Errorf("prepare the cloud: %w", err)
	}
	s.environment, s.vms = serving.environment, serving.vms
	// The cluster is a new one: a cloud that remembers the last one's VMs would bring their Nodes
	// back.
	if !o.KeepCloud {
		if err := errors.Join(endVMs(s.vms), os.RemoveAll(state)); err != nil {
			return fmt.Errorf("remove the state of an earlier cloud: %w", err)
		}
	}
	driver := supervisor.Command{
		Name: Driver, Path: s.command(cmp.Or(o.Driver, serving.driver)), Args: serving.driverArgs, Env: serving.variables(),
	}
	if serving.cloud == "" {
		driver.Args = append(driver.Args, o.CloudArgs...)
		_, err := s.Launch(driver)
		return err
	}
	commands := []supervisor.Command{{Name: Cloud, Path: s.command(serving.cloud), Args: append(serving.cloudArgs, o.CloudArgs...)}, driver}
	if o.Layout != NoNodes {
		commands = append(commands, supervisor.Command{Name: Kubelets, Path: s.command("millwright-sim-kubelet"), Args: append([]string{
			"--kubeconfig=" + s.workload.SimKubeletKubeconfig(), "--backend=" + hooks, "--fast=" + strconv.FormatBool(o.FastKubelets),
		}, o.KubeletArgs...)})
	}
	for _, c := range commands {
		if _, err := s.Launch(c); err != nil {
			return err
		}
	}
	if s.backend, err = grpc.NewClient(hooks, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return fmt.Errorf("connect to the cloud: %w", err)
	}
	return nil
}

// launchManager starts the manager, which serves its health at that address.
func (s *Stack) launchManager(health string, w webhook) error {
	o := s.options
	driver, err := o.Detour(Driver, o.endpoint("driver"))
	if err != nil {
		return fmt.Errorf("lead the manager to its driver: %w", err)
	}
	args := []string{
		"--kubeconfig=" + s.ManagerKubeconfig(),
		"--leader-election-namespace=" + managerNamespace,
		"--leader-election-identity=local",
		"--health-bind-address=" + health,
		"--metrics-bind-address=" + s.metrics.address,
		"--driver=" + o.Provider.Name() + "=" + driver,
		"--webhook-bind-address=" + w.address,
		"--webhook-cert-dir=" + w.dir,
	}
	args = append(append(args, o.workloadArgs()...), o.ManagerArgs...)
	_, err = s.Launch(supervisor.Command{Name: Manager, Path: s.command("millwright-manager"), Args: args})
	return err
}

// Process returns a process of Millwright or of the management cluster by its name, one of the
// workload cluster by [InWorkload] of its name; nil if there is none.
func (s *Stack) Process(name string) *supervisor.Process {
	if component, is := strings.CutPrefix(name, workloadPrefix); is {
		return s.workload.Process(component)
	}
	return s.Cluster.Process(name)
}

// restartDelay is how long a process stays down that ended by itself: long enough not to spin,
// short for who waits.
const restartDelay = time.Second

func (s *Stack) restartEnded() {
	defer s.restart.Done()
	for {
		select {
		case <-s.quit:
			return
		case end := <-s.Exits():
			if !s.revive(end) {
				return
			}
		case end := <-s.workload.Exits():
			named := *end
			if s.workload != s.Cluster {
				named.Process = InWorkload(end.Process)
			}
			if !s.revive(&named) {
				return
			}
		}
	}
}

// revive starts a process again, and says whether the stack goes on.
func (s *Stack) revive(end *supervisor.ExitError) bool {
	s.options.Ended(end)
	switch end.Process {
	case Cloud, Driver, Manager, Kubelets:
	default:
		if !s.options.ReviveControlPlane {
			s.failed <- end
			return false
		}
	}
	s.options.Log.Warn("a process ended by itself and is started again", "process", end.Process, "state", end.State, "log", end.LogPath)
	select {
	case <-s.quit:
		return false
	case <-time.After(restartDelay):
	}
	if err := s.Process(end.Process).Start(); err != nil {
		s.failed <- err
		return false
	}
	return true
}

// Failed delivers the end of a part without which nothing works.
func (s *Stack) Failed() <-chan error { return s.failed }

// Backend is the way into the cloud's hooks: its ledger, its faults, its VMs. There are none
// without a test cloud.
func (s *Stack) Backend() backendv1alpha1.BackendServiceClient {
	return backendv1alpha1.NewBackendServiceClient(s.backend)
}

// VMs is the folder with one folder for each VM of the QEMU driver; empty for other providers.
func (s *Stack) VMs() string { return s.vms }

// Provider returns the cloud that the stack runs.
func (s *Stack) Provider() Provider { return s.options.Provider }

// CloudEnvironment returns the environment variables with which clients of the cloud's own API
// reach it, as its driver does; nil where no client needs any.
func (s *Stack) CloudEnvironment() map[string]string { return maps.Clone(s.environment) }

// Stop ends everything and returns when it is gone. A second Stop does nothing.
func (s *Stack) Stop() error {
	select {
	case <-s.quit:
		return nil
	default:
		close(s.quit)
	}
	s.restart.Wait()
	var err error
	if s.backend != nil {
		err = s.backend.Close()
	}
	return errors.Join(err, s.Cluster.Stop(), s.workload.Stop(), endVMs(s.vms))
}

func (s *Stack) command(name string) string { return filepath.Join(s.options.CommandDir, name) }
