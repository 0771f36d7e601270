// Package nodeflags are the flags that say what new machines are set up with where their Cluster
// does not say. The manager and `kubectl millwright userdata` have the same.
package nodeflags

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/millwright-dev/millwright/core/bootstrap"
)

// Flags are the flags as they were given.
type Flags struct {
	config                             bootstrap.Config
	caBundle, clientCABundle, settings string
	mirrors, startupTaints             []string
}

// Add adds the flags to a set.
func (f *Flags) Add(flags *pflag.FlagSet) {
	c := &f.config
	flags.StringVar(&c.Server, "node-api-server", "", "URL by which machines reach the API server, as https://HOST:PORT. Empty: the cluster says.")
	flags.StringVar(&f.caBundle, "node-ca-bundle", "", "File with the CA, as PEM, with which machines check the API server. Empty: the cluster says.")
	flags.StringVar(&f.clientCABundle, "node-client-ca-bundle", "", "File with the CA, as PEM, with which kubelets check their clients. Empty: the cluster says.")
	flags.StringSliceVar(&c.ClusterDNS, "node-cluster-dns", nil, "Addresses of the cluster's DNS. Empty: the cluster says.")
	flags.StringVar(&c.ClusterDomain, "node-service-domain", "", "Domain of the cluster's Services. Empty: the cluster says, else cluster.local.")
	flags.BoolVar(&c.ExternalCloudProvider, "node-external-cloud-provider", false, "Whether kubelets wait for a cloud controller manager.")
	flags.StringVar(&c.PauseImage, "node-pause-image", "", "Image of each pod's sandbox. Empty: as kubeadm takes it.")
	flags.StringVar(&c.HTTPProxy, "node-http-proxy", "", "URL of the proxy for all that leaves a machine.")
	flags.StringSliceVar(&c.NoProxy, "node-no-proxy", nil, "Hosts, domains and ranges that machines reach without the proxy, besides the cluster's own.")
	flags.StringArrayVar(&f.mirrors, "node-registry-mirrors", nil, "Mirrors of a registry, as HOST=URL[,URL...]; HOST _default stands for all others. Repeat for several.")
	flags.StringVar(&c.ArtifactMirror, "node-artifacts-mirror", "", "URL under which all that machines download is, as URL/HOST/PATH. Empty: its own sites.")
	flags.StringArrayVar(&f.startupTaints, "node-startup-taint", nil, "A taint that kubelets register with, as KEY[=VALUE]:EFFECT. It goes, and the Machine is Running, once the Node can take pods. Repeat for several.")
	flags.StringVar(&f.settings, "node-kubelet-configuration", "", "File with a KubeletConfiguration that is merged over the defaults.")
}

// Config returns what the flags say. It reads the files that they name.
func (f *Flags) Config() (bootstrap.Config, error) {
	c := f.config
	for _, file := range []struct {
		flag, path string
		into       *[]byte
	}{
		{"node-ca-bundle", f.caBundle, &c.CABundle},
		{"node-client-ca-bundle", f.clientCABundle, &c.ClientCABundle},
		{"node-kubelet-configuration", f.settings, &c.KubeletConfiguration},
	} {
		if file.path == "" {
			continue
		}
		data, err := os.ReadFile(file.path)
		if err != nil {
			return c, fmt.Errorf("--%s: %w", file.flag, err)
		}
		*file.into = data
	}
	for _, text := range f.mirrors {
		host, urls, found := strings.Cut(text, "=")
		if !found || host == "" || urls == "" {
			return c, fmt.Errorf("--node-registry-mirrors=%s: use HOST=URL, several URLs separated by commas", text)
		}
		if c.RegistryMirrors == nil {
			c.RegistryMirrors = map[string][]string{}
		}
		c.RegistryMirrors[host] = strings.Split(urls, ",")
	}
	var err error
	c.StartupTaints, err = readTaints(f.startupTaints)
	return c, err
}
