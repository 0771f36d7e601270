package stack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/localcluster"
)

// install applies the shipped CRDs and RBAC, as an operator would.
func (s *Stack) install(ctx context.Context) error {
	rbac := "rbac"
	if s.options.Layout != OneCluster {
		rbac = "two-clusters/management"
	}
	for _, folder := range []string{"crds", rbac} {
		if err := s.kubectl(ctx, nil, "apply", "--server-side", "-k", filepath.Join(s.options.DeployDir, folder)); err != nil {
			return err
		}
	}
	if s.options.Layout == TwoClusters {
		folder := filepath.Join(s.options.DeployDir, "two-clusters", "workload")
		if err := s.options.kubectl(ctx, s.workload, nil, "apply", "--server-side", "-k", folder); err != nil {
			return err
		}
	}
	return s.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")
}

// kubectl runs kubectl on the management cluster, with a manifest as its standard input.
func (s *Stack) kubectl(ctx context.Context, manifest []byte, args ...string) error {
	return s.options.kubectl(ctx, s.Cluster, manifest, args...)
}

// kubectl runs kubectl on a cluster, with a manifest as its standard input.
func (o Options) kubectl(ctx context.Context, on *localcluster.Cluster, manifest []byte, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(o.BinDir, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+on.Kubeconfig())
	command.Stdin = bytes.NewReader(manifest)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s %s: %w: %s", args[0], args[len(args)-1], err, out)
	}
	return nil
}

// ManagerKubeconfig returns the path of the kubeconfig with which the manager works: its
// ServiceAccount's, no more.
func (s *Stack) ManagerKubeconfig() string { return filepath.Join(s.options.Dir, "manager.kubeconfig") }

// WorkloadKubeconfig returns the path of the kubeconfig with which the manager works in the
// workload cluster: that of its ServiceAccount there. The file is there with [TwoClusters] only.
func (s *Stack) WorkloadKubeconfig() string { return s.options.workloadKubeconfig() }

func (o Options) workloadKubeconfig() string { return filepath.Join(o.Dir, "workload.kubeconfig") }

// writeManagerKubeconfigs writes the kubeconfigs that the manager works with.
func (s *Stack) writeManagerKubeconfigs(ctx context.Context) error {
	if err := s.options.writeKubeconfig(ctx, s.Cluster, localcluster.APIServer, s.ManagerKubeconfig()); err != nil {
		return err
	}
	if s.options.Layout != TwoClusters {
		return nil
	}
	return s.options.writeKubeconfig(ctx, s.workload, WorkloadAPIServer, s.WorkloadKubeconfig())
}

// writeKubeconfig gives the manager its ServiceAccount's rights in a cluster, and the way to the
// API server, which has that name.
func (o Options) writeKubeconfig(ctx context.Context, of *localcluster.Cluster, apiServer, path string) error {
	if err := of.KubeconfigForServiceAccount(ctx, managerNamespace, managerServiceAccount, path); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("read the manager's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		address, err := o.Detour(apiServer, strings.TrimPrefix(cluster.Server, "https://"))
		if err != nil {
			return fmt.Errorf("lead the manager to %s: %w", apiServer, err)
		}
		cluster.Server = "https://" + address
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return nil
}
