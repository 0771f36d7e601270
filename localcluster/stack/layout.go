package stack

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/millwright-dev/millwright/localcluster"
)

// Layout says in which cluster the Machines' Nodes are.
type Layout string

// The layouts.
const (
	// OneCluster has Machines and Nodes in the same cluster.
	OneCluster Layout = "one-cluster"
	// TwoClusters has Machines in a management cluster without Nodes, and their Nodes in a workload
	// cluster. The manager has the shipped RBAC of each side.
	TwoClusters Layout = "two-clusters"
	// NoNodes has Machines in a management cluster, and Nodes nowhere.
	NoNodes Layout = "no-nodes"
)

// Layouts returns all that there are; the first one is the default.
func Layouts() []Layout { return []Layout{OneCluster, TwoClusters, NoNodes} }

// workloadPrefix is what the names of a workload cluster's processes begin with.
const workloadPrefix = "workload/"

// WorkloadAPIServer is the workload cluster's API server.
const WorkloadAPIServer = workloadPrefix + localcluster.APIServer

// InWorkload returns the name of the workload cluster's process that has the name component in a
// cluster of its own: see [Stack.Process]. In [OneCluster] it is the only cluster's.
func InWorkload(component string) string { return workloadPrefix + component }

// startClusters starts the clusters of a layout. The workload cluster is the management cluster
// where there is no other.
func startClusters(ctx context.Context, o Options) (management, workload *localcluster.Cluster, err error) {
	options := localcluster.Options{
		BinDir: o.BinDir, Dir: o.Dir, Log: o.Log, AuditLog: o.AuditLog, AuditBodies: o.AuditBodies, NodeGracePeriod: o.NodeGracePeriod,
		Fsync: o.Fsync, Endpoint: o.Endpoint, FastKubelets: o.FastKubelets,
	}
	first := options
	if o.Layout != OneCluster {
		first.WithoutNodes, first.Endpoint = true, localcluster.Endpoint{}
	}
	if management, err = localcluster.Start(ctx, first); err != nil || o.Layout != TwoClusters {
		return management, management, err
	}
	options.Dir = filepath.Join(o.Dir, "workload")
	if workload, err = localcluster.Start(ctx, options); err != nil {
		return nil, nil, errors.Join(err, management.Stop())
	}
	return management, workload, nil
}

// Workload returns the cluster of the Nodes: the management cluster itself, but with
// [TwoClusters].
func (s *Stack) Workload() *localcluster.Cluster { return s.workload }

// Clusters returns the management cluster and, where it is another one, the workload cluster.
func (s *Stack) Clusters() []*localcluster.Cluster {
	if s.workload == s.Cluster {
		return []*localcluster.Cluster{s.Cluster}
	}
	return []*localcluster.Cluster{s.Cluster, s.workload}
}

// workloadArgs are the manager's flags that say where the Nodes are.
func (o Options) workloadArgs() []string {
	switch o.Layout {
	case TwoClusters:
		return []string{"--workload-kubeconfig=" + o.workloadKubeconfig()}
	case NoNodes:
		return []string{"--workload-kubeconfig=none"}
	default:
		return nil
	}
}
