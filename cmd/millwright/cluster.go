package main

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterFlags say which cluster, as those of kubectl do.
type clusterFlags struct {
	kubeconfig, namespace, kubeContext string
}

// add adds them; inNamespace is the default of --namespace, whose help is namespaceHelp.
func (f *clusterFlags) add(flags *pflag.FlagSet, inNamespace, namespaceHelp string) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "Path of the kubeconfig. Empty: $KUBECONFIG, else ~/.kube/config.")
	flags.StringVar(&f.kubeContext, "context", "", "Context of the kubeconfig. Empty: its current one.")
	flags.StringVarP(&f.namespace, "namespace", "n", inNamespace, namespaceHelp)
}

// connect returns a client of the API with these types, and the namespace that was meant.
func (f *clusterFlags) connect(types ...func(*runtime.Scheme) error) (c client.Client, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.kubeContext})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	if namespace = f.namespace; namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range types {
		if err := add(scheme); err != nil {
			return nil, "", err
		}
	}
	c, err = client.New(config, client.Options{Scheme: scheme})
	return c, namespace, err
}
