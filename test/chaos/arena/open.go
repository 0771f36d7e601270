package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/attacher"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/chaos/etcdlog"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// namespace is where users work.
const namespace = "chaos"

// arena is a Millwright to be disturbed, with all who use and disturb it.
type arena struct {
	options   Options
	stack     *stack.Stack
	processes *processes
	cloud     *cloud
	users     *users
	team      *team
	pods      *pods
	volumes   *attacher.Attacher
	judge     *judge.Judge
	view      *view
	record    *record
	// audits, one for each cluster, and finder know how far the logs were read.
	audits []*audit.Log
	finder *finder
	end    context.CancelFunc
	follow sync.WaitGroup
}

// strayAge is the least that the manager takes: a create may take as long.
const strayAge = 8 * time.Second

// managerArgs are flags of the manager: whatever takes minutes by default takes seconds here. Of so
// few Machines any number may fail.
func (o Options) managerArgs() []string {
	args := []string{
		"-v=4", "--settled-interval=2s", "--orphan-interval=1s", "--orphan-age=" + strayAge.String(), "--max-unhealthy=100%",
		"--settle-period=2s", "--credential-retry=2s",
	}
	if o.Forgetful > 0 {
		args = append(args, "--create-settle="+o.Forgetful.String())
	}
	for _, limit := range []struct {
		flag string
		long time.Duration
	}{
		{"--deadline-status", 2 * time.Second}, {"--deadline-mutation", 3 * time.Second}, {"--deadline-list-page", 3 * time.Second},
		{"--node-startup-timeout", 8 * time.Second}, {"--drain-timeout", drainTimeout}, {"--node-volume-detach-timeout", detachTimeout},
	} {
		args = append(args, limit.flag+"="+o.patiently(limit.long).String())
	}
	return args
}

// patiently is how long something takes here that takes so long on a machine that does nothing
// else.
func (o Options) patiently(long time.Duration) time.Duration {
	return time.Duration(max(o.Slowness, 1)) * long
}

func open(ctx context.Context, o Options) (*arena, error) {
	a := &arena{options: o, view: newView(), record: &record{}}
	if o.Forgetful > 0 {
		o.Cloud.Args = append(slices.Clone(o.Cloud.Args), "--forgetful")
		o.Cloud.DriverArgs = append(slices.Clone(o.Cloud.DriverArgs), "--undeclared-settle")
	}
	a.processes = newProcesses(o, a.record)
	driver, err := writeDriver(o)
	if err != nil {
		return nil, err
	}
	account, err := openAccount(o)
	if err != nil {
		return nil, err
	}
	a.stack, err = stack.Start(ctx, stack.Options{
		Layout: o.Layout, Provider: o.Cloud.Provider, Driver: driver, CloudArgs: append(account, o.Cloud.Args...),
		BinDir: o.BinDir, CommandDir: o.CommandDir, DeployDir: o.DeployDir, Dir: o.Dir, Log: o.Log,
		AuditLog: true, Fsync: true, ReviveControlPlane: true, Detour: a.processes.detour, Ended: a.record.noteEnd, ManagerArgs: o.managerArgs(),
		NodeGracePeriod: o.patiently(nodeGrace), KubeletArgs: []string{"--lease-duration=" + o.patiently(leaseDuration).String()},
	})
	if err != nil {
		return nil, errors.Join(err, a.processes.closeLinks())
	}
	a.processes.stack = a.stack
	if err := a.prepare(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// writeDriver writes a script that starts the cloud's driver with the flags that it has here, and
// returns its name as the stack takes it.
func writeDriver(o Options) (string, error) {
	commands, err := filepath.Abs(o.CommandDir)
	if err != nil {
		return "", fmt.Errorf("find the executables: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(o.Dir, "driver.sh"))
	if err != nil {
		return "", fmt.Errorf("find the folder: %w", err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" %s\n", filepath.Join(commands, o.Cloud.Driver), strings.Join(o.Cloud.DriverArgs, " "))
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be executed
		return "", fmt.Errorf("write the driver's script: %w", err)
	}
	return filepath.Rel(commands, path)
}

// prepare makes what stands there from the beginning, and begins to watch.
func (a *arena) prepare(ctx context.Context) error {
	c, err := newClient(a.stack.RESTConfig())
	if err != nil {
		return err
	}
	workload, err := newClient(a.stack.Workload().RESTConfig())
	if err != nil {
		return err
	}
	a.users = &users{options: a.options, client: c, workload: workload, view: a.view, record: a.record}
	a.team, a.pods = &team{users: a.users, environment: a.stack.CloudEnvironment()}, &pods{users: a.users}
	a.volumes = attacher.New(workload, applications)
	for name, there := range map[string]client.Client{namespace: c, applications: workload} {
		if err := there.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("make the users' namespaces: %w", err)
		}
	}
	system := &corev1.Namespace{}
	// It is the Nodes' cluster whose uid marks what is in the cloud.
	if err := workload.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("read the cluster's uid: %w", err)
	}
	info, err := a.stack.Backend().GetBackendInfo(ctx, &backendv1alpha1.GetBackendInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("ask the cloud what it can do: %w", err)
	}
	a.cloud = &cloud{backend: a.stack.Backend(), clusterUID: string(system.UID), record: a.record, effects: info.GetEffects()}
	foreign, err := a.cloud.makeForeign(ctx)
	if err != nil {
		return err
	}
	if err := a.users.makeForeignNode(ctx, foreign[0].GetProviderId()); err != nil {
		return err
	}
	if err := a.users.checkHealth(ctx); err != nil {
		return err
	}
	if a.judge, err = a.newJudge(ctx, foreign); err != nil {
		return err
	}
	var logs []string
	for _, cluster := range a.stack.Clusters() {
		a.audits, logs = append(a.audits, audit.NewLog(cluster.AuditLogPath())), append(logs, filepath.Dir(cluster.AuditLogPath()))
	}
	a.finder = newFinder(canary, logs...)
	return a.watch(ctx)
}

// newClient returns the users' client of a cluster.
func newClient(config *rest.Config) (client.Client, error) {
	config.Timeout = requestTimeout
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, clusterv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make the users' client: %w", err)
	}
	return c, nil
}

// newJudge returns a judge of a cloud in which there is nothing yet but foreign VMs, which users
// may claim.
func (a *arena) newJudge(ctx context.Context, foreign []*backendv1alpha1.VM) (*judge.Judge, error) {
	held, err := a.cloud.resources(ctx, "")
	if err != nil {
		return nil, err
	}
	var all, ids []string
	for _, r := range held {
		all = append(all, r.GetId())
	}
	for _, vm := range foreign {
		ids, a.users.foreignIDs = append(ids, vm.GetId()), append(a.users.foreignIDs, vm.GetProviderId())
	}
	return judge.New(judge.Options{
		Core: stack.ManagerUser, ClusterUID: a.cloud.clusterUID, ForeignNodes: []string{foreignNode}, ForeignVMs: ids, Foreign: all,
		Resources: a.options.Cloud.Resources, Patience: a.options.patiently(patience), StrayAge: strayAge,
		DrainTimeout: a.options.patiently(drainTimeout), DetachTimeout: a.options.patiently(detachTimeout), UnhealthyAfter: unhealthyAfter,
	}), nil
}

// patience is how far behind Millwright's view may be, on a machine with much to do.
const patience = 2 * time.Second

// canary is in all user data, and nowhere else: user data is secret.
const canary = "canary-5d1c0f2e9b7a"

// watch follows etcd until the arena is closed.
func (a *arena) watch(ctx context.Context) error {
	var logs []*etcdlog.Log
	for _, cluster := range a.stack.Clusters() {
		url, config, err := cluster.EtcdAccess()
		if err != nil {
			return err
		}
		logs = append(logs, etcdlog.New(url, config, a.view.see))
	}
	ctx, a.end = context.WithCancel(context.WithoutCancel(ctx))
	a.follow.Go(func() { feelPulse(ctx, a.record) })
	a.follow.Go(func() { askAPIServer(ctx, plan.APIServer, a.users.client, a.record) })
	if a.options.Plan.Workload {
		a.follow.Go(func() { askAPIServer(ctx, plan.WorkloadAPIServer, a.users.workload, a.record) })
	}
	// While the API server is away, it tries again.
	a.follow.Go(func() { a.volumes.Run(ctx, func(error) {}) })
	for _, log := range logs {
		a.follow.Go(func() {
			if err := log.Follow(ctx); err != nil {
				a.record.noteLost(err)
			}
		})
	}
	return nil
}

func (a *arena) close() error {
	if a.end != nil {
		a.end()
	}
	a.follow.Wait()
	err := a.stack.Stop()
	return errors.Join(err, a.processes.closeLinks())
}
