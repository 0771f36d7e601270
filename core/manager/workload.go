package manager

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/workload"
)

// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=namespaces,verbs=get

// newWorkload returns the cluster of the Nodes, which mgr runs; nil where there is none. Where no
// kubeconfig names another one it is mgr itself.
func newWorkload(mgr ctrl.Manager, o Options) (cluster.Cluster, error) {
	switch o.WorkloadKubeconfig {
	case "":
		return mgr, nil
	case NoNodes:
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	config, err := workload.Config(o.WorkloadKubeconfig, mgr.GetLogger().WithName("workload"))
	if err != nil {
		return nil, fmt.Errorf("--workload-kubeconfig=%s: %w", o.WorkloadKubeconfig, err)
	}
	other, err := cluster.New(clientConfig(config, o), func(to *cluster.Options) {
		to.Scheme, to.Logger, to.Cache, to.Client = mgr.GetScheme(), mgr.GetLogger(), cacheOptions(), client.Options{FieldOwner: fieldOwner}
	})
	if err != nil {
		return nil, fmt.Errorf("make the client of the Nodes' cluster: %w", err)
	}
	if err := mgr.Add(other); err != nil {
		return nil, fmt.Errorf("add the Nodes' cluster: %w", err)
	}
	if err := mgr.AddReadyzCheck("workload-caches", cachesSynced(other.GetCache().WaitForCacheSync)); err != nil {
		return nil, err
	}
	return other, nil
}

// clientConfig is config as every client of an API server has it here.
func clientConfig(config *rest.Config, o Options) *rest.Config {
	config = rest.CopyConfig(config)
	// The API server's priority and fairness does the limiting.
	config.QPS = -1
	config.Wrap(intercept(repeatEvents))
	if o.ReadOnly {
		config.Wrap(intercept(refuseChanges))
	}
	return config
}

// newScheme has all kinds that core reads or writes. The drain evicts by policy/v1: unregistered,
// its answers cannot be told apart.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, discoveryv1.AddToScheme, policyv1.AddToScheme, coordinationv1.AddToScheme,
		certificatesv1.AddToScheme, storagev1.AddToScheme, authorizationv1.AddToScheme, clusterv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return scheme, nil
}
