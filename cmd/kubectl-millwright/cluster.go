package main

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
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
	config, err := c.config()
	if err != nil {
		return nil, "", err
	}
	if namespace, err = c.namespace(false); err != nil {
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

func (c *cluster) config() (*rest.Config, error) {
	config, err := c.flags.ToRawKubeConfigLoader().ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's priority and fairness limits, as it does kubectl
	return config, nil
}

// namespace is the one that was meant; empty for all.
func (c *cluster) namespace(all bool) (string, error) {
	if all {
		return "", nil
	}
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// connectToManager is connect for commands about the manager: without --namespace its own is meant.
func (c *cluster) connectToManager(types ...func(*runtime.Scheme) error) (api client.Client, namespace string, err error) {
	api, _, err = c.connect(types...)
	return api, cmp.Or(ptr.Deref(c.flags.Namespace, ""), managersNamespace), err
}
