package etcdlog

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// ours are the kinds that are kept as JSON, by where.
var ours = map[string]func() client.Object{
	"cluster.k8s.io/machines/":           func() client.Object { return &clusterv1alpha1.Machine{} },
	"cluster.k8s.io/machinesets/":        func() client.Object { return &clusterv1alpha1.MachineSet{} },
	"cluster.k8s.io/machinedeployments/": func() client.Object { return &clusterv1alpha1.MachineDeployment{} },
}

// builtIn are kinds of Kubernetes' own that are read, too; etcd calls Nodes minions. Of
// Secrets they are bootstrap tokens.
var builtIn = []string{
	"events/", "minions/", "namespaces/", "persistentvolumeclaims/", "pods/", "secrets/kube-system/bootstrap-token-", "volumeattachments/",
}

// decode returns the object behind a key, nil if it is of no kind that is read.
func decode(key string, value []byte) (client.Object, error) {
	rest := strings.TrimPrefix(key, prefix)
	for folder, empty := range ours {
		if strings.HasPrefix(rest, folder) {
			o := empty()
			return o, json.Unmarshal(value, o)
		}
	}
	for _, folder := range builtIn {
		if !strings.HasPrefix(rest, folder) {
			continue
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
		if err != nil {
			return nil, err
		}
		known, ok := o.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no object", o)
		}
		return known, nil
	}
	return nil, nil
}
