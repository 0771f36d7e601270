package localcluster

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/millwright-dev/millwright/localcluster/supervisor"
)

//go:embed config
var configFiles embed.FS

// startTimeout bounds Start. Three seconds are usual; a machine with better things to do takes
// longer.
const startTimeout = 2 * time.Minute

// stopGrace is what a component gets to end by itself. Nothing depends on it: no state outlives the
// cluster.
const stopGrace = 2 * time.Second

// Cluster is a running cluster. It is safe for concurrent use.
type Cluster struct {
	layout     *layout
	supervisor *supervisor.Supervisor
	config     *rest.Config
	client     kubernetes.Interface
	// spares counts the spare addresses that were given out.
	spares atomic.Int32
}

// Start brings a fresh cluster up and returns when it is ready (see [Cluster.WaitReady]), within
// two minutes. What an earlier cluster left in the directory is removed, its processes included.
// When Start fails, nothing is left running. If a component ended, the error holds the end of its
// log. Logs stay in Dir/logs.
//
// Ending ctx aborts Start, and has no bearing on the Cluster afterwards: only [Cluster.Stop] ends
// it.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start local cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start local cluster: %w", err)
	}
	s, err := supervisor.New(options.Dir, options.Log)
	if err != nil {
		return nil, fmt.Errorf("start local cluster: %w", err)
	}
	c := &Cluster{supervisor: s, layout: &layout{options: options}}
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start local cluster: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) bringUp(ctx context.Context) error {
	started := time.Now()
	log := c.layout.options.Log
	if err := c.layout.prepare(); err != nil {
		return err
	}
	var err error
	if c.config, err = c.layout.adminConfig(); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := c.run(ctx, c.layout.etcd(), c.etcdReady); err != nil {
		return err
	}
	if err := c.run(ctx, c.layout.apiServer(), c.apiServerReady); err != nil {
		return err
	}
	if err := grantRoles(ctx, c.client, c.layout.options.FastKubelets); err != nil {
		return err
	}
	if err := c.layout.publishClusterInfo(ctx, c.client); err != nil {
		return err
	}
	commands := map[string]func() supervisor.Command{
		ControllerManager: c.layout.controllerManager, Scheduler: c.layout.scheduler, Kwok: c.layout.kwok,
	}
	for _, name := range c.layout.options.components()[2:] {
		if _, err := c.supervisor.Start(commands[name]()); err != nil {
			return err
		}
	}
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	log.Info("Local cluster is ready", "kubeconfig", c.Kubeconfig(), "took", time.Since(started).Round(time.Millisecond))
	return nil
}

// run starts a component that the next one needs, and waits for it.
func (c *Cluster) run(ctx context.Context, command supervisor.Command, ready func(context.Context) error) error {
	if _, err := c.supervisor.Start(command); err != nil {
		return err
	}
	return c.await(ctx, command.Name, ready)
}

// Stop ends all processes of the cluster and returns when they are gone. What it wrote stays, for
// whoever wants to read its logs. A second Stop does nothing.
func (c *Cluster) Stop() error {
	err := c.supervisor.Close(stopGrace)
	return errors.Join(err, c.layout.ports.release())
}

// Process returns a component, by the names Etcd, APIServer, ControllerManager, Scheduler and Kwok,
// or nil. There are no Scheduler and Kwok with Options.WithoutNodes. Started again after a Kill, it
// has the same address and the same data; [Cluster.WaitReady] says when it is of use.
func (c *Cluster) Process(name string) *supervisor.Process { return c.supervisor.Process(name) }

// Launch runs another program of the cluster's owner under the same supervision: it ends with the
// cluster, before the cluster's own components, and never outlives this process.
func (c *Cluster) Launch(command supervisor.Command) (*supervisor.Process, error) {
	return c.supervisor.Start(command)
}

// Exits delivers the end of each process, launched ones included, that nobody asked to end.
func (c *Cluster) Exits() <-chan *supervisor.ExitError { return c.supervisor.Exits() }

// AuditLogPath returns the file with a line of JSON (audit.k8s.io/v1 Event) for each write, if
// Options.AuditLog is set.
func (c *Cluster) AuditLogPath() string { return c.layout.auditLogPath() }

// EtcdAccess returns how to reach etcd, whose history has each change of each object, in order,
// whatever becomes of the API server meanwhile.
func (c *Cluster) EtcdAccess() (url string, config *tls.Config, err error) {
	config, err = c.layout.etcdConfig()
	return c.layout.ports.url(etcdClientPort), config, err
}
