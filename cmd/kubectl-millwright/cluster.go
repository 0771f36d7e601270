package main

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managersNamespace is where the manager is, unless somebody says otherwise.
const managersNamespace = "millwright-system"

// cluster is the one that kubectl's flags mean.
type cluster struct {
	flags *genericclioptions.ConfigFlags
}

func newCluster() *cluster { return &cluster{flags: genericclioptions.NewConfigFlags(true)} }

// connect returns a client of the API with these types, and the namespace that was meant.
func (c *cluster) connect(types ...func(*runtime.Scheme) error) (api client.Client, namespace string, err error) {
	loader := c.flags.ToRawKubeConfigLoader()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	config.QPS = -1 // the API server's priority and fairness limits, as it does kubectl
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", err
	}
	scheme := runtime.NewScheme()
	for _, add := range types {
		if err := add(scheme); err != nil {
			return nil, "", err
		}
	}
	api, err = client.New(config, client.Options{Scheme: scheme})
	return api, namespace, err
}

// connectToManager is connect for commands about the manager: without --namespace its own is meant.
func (c *cluster) connectToManager(types ...func(*runtime.Scheme) error) (api client.Client, namespace string, err error) {
	api, _, err = c.connect(types...)
	return api, cmp.Or(ptr.Deref(c.flags.Namespace, ""), managersNamespace), err
}
