package stack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/tools/clientcmd"

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
	*localcluster.Cluster
	options Options
	backend *grpc.ClientConn
	failed  chan error
	quit    chan struct{}
	restart sync.WaitGroup
	metrics metrics
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
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		BinDir: o.BinDir, Dir: o.Dir, Log: o.Log, AuditLog: o.AuditLog, AuditBodies: o.AuditBodies, NodeGracePeriod: o.NodeGracePeriod,
		Fsync: o.Fsync, Endpoint: o.Endpoint, FastKubelets: o.FastKubelets,
	})
	if err != nil {
		return nil, err
	}
	s := &Stack{Cluster: cluster, options: o, failed: make(chan error, 1), quit: make(chan struct{})}
	if err := s.bringUp(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) bringUp(ctx context.Context) error {
	if err := s.install(ctx); err != nil {
		return err
	}
	if err := s.writeManagerKubeconfig(ctx); err != nil {
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

// launchCloud starts the cloud's driver, and where it is a test cloud also the cloud and the
// simulated kubelets of its VMs.
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
	for _, c := range []supervisor.Command{
		{Name: Cloud, Path: s.command(serving.cloud), Args: append(serving.cloudArgs, o.CloudArgs...)},
		driver,
		{Name: Kubelets, Path: s.command("millwright-sim-kubelet"), Args: append([]string{
			"--kubeconfig=" + s.SimKubeletKubeconfig(), "--backend=" + hooks, "--fast=" + strconv.FormatBool(o.FastKubelets),
		}, o.KubeletArgs...)},
	} {
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
	_, err = s.Launch(supervisor.Command{Name: Manager, Path: s.command("millwright-manager"), Args: append(args, o.ManagerArgs...)})
	return err
}

// writeManagerKubeconfig gives the manager its ServiceAccount's rights, and the way to the API
// server.
func (s *Stack) writeManagerKubeconfig(ctx context.Context) error {
	path := s.ManagerKubeconfig()
	if err := s.KubeconfigForServiceAccount(ctx, managerNamespace, managerServiceAccount, path); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("read the manager's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		address, err := s.options.Detour(localcluster.APIServer, strings.TrimPrefix(cluster.Server, "https://"))
		if err != nil {
			return fmt.Errorf("lead the manager to the API server: %w", err)
		}
		cluster.Server = "https://" + address
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return nil
}

// install applies the shipped CRDs and RBAC, as an operator would.
func (s *Stack) install(ctx context.Context) error {
	for _, folder := range []string{"crds", "rbac"} {
		if err := s.kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(s.options.DeployDir, folder)); err != nil {
			return err
		}
	}
	return s.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")
}

func (s *Stack) kubectl(ctx context.Context, args ...string) error {
	return s.kubectlWith(ctx, nil, args...)
}

// kubectlWith runs kubectl with a manifest as its standard input.
func (s *Stack) kubectlWith(ctx context.Context, manifest []byte, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(s.options.BinDir, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	command.Stdin = bytes.NewReader(manifest)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s %s: %w: %s", args[0], args[len(args)-1], err, out)
	}
	return nil
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
			s.options.Ended(end)
			if !s.revive(end) {
				return
			}
		}
	}
}

// revive starts a process again, and says whether the stack goes on.
func (s *Stack) revive(end *supervisor.ExitError) bool {
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

// ManagerKubeconfig returns the path of the kubeconfig with which the manager works: its
// ServiceAccount's, no more.
func (s *Stack) ManagerKubeconfig() string { return filepath.Join(s.options.Dir, "manager.kubeconfig") }

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
	return errors.Join(err, s.Cluster.Stop(), endVMs(s.vms))
}

func (s *Stack) command(name string) string { return filepath.Join(s.options.CommandDir, name) }
