package discovery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/template"
)

// applyCluster puts what the Cluster says over the flags.
func (r *Resolver) applyCluster(ctx context.Context, c *bootstrap.Config, owner *clusterv1alpha1.Cluster) error {
	if len(owner.Spec.APIEndpoints) > 0 {
		c.Server = serverURL(owner.Spec.APIEndpoints[0])
	}
	if network := owner.Spec.ClusterNetwork; network != nil {
		set(&c.ClusterDomain, network.ServiceDomain)
		if network.Pods != nil {
			setList(&c.PodCIDRs, network.Pods.CIDRBlocks)
		}
		if network.Services != nil {
			setList(&c.ServiceCIDRs, network.Services.CIDRBlocks)
		}
	}
	b := owner.Spec.Bootstrap
	if b == nil {
		return nil
	}
	setBytes(&c.CABundle, b.CABundle)
	setBytes(&c.ClientCABundle, b.ClientCABundle)
	setBytes(&c.HostCABundle, b.HostCABundle)
	setBytes(&c.KubeletConfiguration, string(b.KubeletConfiguration.Raw))
	setList(&c.ClusterDNS, b.ClusterDNS)
	setList(&c.NoProxy, b.NoProxy)
	setList(&c.NTPServers, b.NTPServers)
	setList(&c.Packages, b.Packages)
	set(&c.PauseImage, b.PauseImage)
	set(&c.HTTPProxy, b.HTTPProxy)
	if b.ExternalCloudProvider != nil {
		c.ExternalCloudProvider = *b.ExternalCloudProvider
	}
	if len(b.RegistryMirrors) > 0 {
		c.RegistryMirrors = map[string][]string{}
		for host, mirrors := range b.RegistryMirrors {
			c.RegistryMirrors[host] = mirrors
		}
	}
	c.StartupTaints = r.startupTaints(owner)
	c.BlockMetadata = c.BlockMetadata || b.BlockMetadata
	if err := applyFiles(c, b); err != nil {
		return err
	}
	return r.applyArtifacts(ctx, c, owner)
}

// startupTaints returns what the Cluster says, or else the flags. The Cluster may be nil.
func (r *Resolver) startupTaints(owner *clusterv1alpha1.Cluster) []corev1.Taint {
	if owner == nil || owner.Spec.Bootstrap == nil || len(owner.Spec.Bootstrap.StartupTaints) == 0 {
		return r.o.Flags.StartupTaints
	}
	var taints []corev1.Taint
	for _, t := range owner.Spec.Bootstrap.StartupTaints {
		taints = append(taints, t.NodeTaint())
	}
	return taints
}

// applyFiles takes over the files and units.
func applyFiles(c *bootstrap.Config, b *clusterv1alpha1.ClusterBootstrap) error {
	for i, f := range b.Files {
		mode, err := template.ParseMode(f.Permissions)
		if err != nil {
			return &IncompleteError{Message: fmt.Sprintf("spec.bootstrap.files[%d].permissions of the Cluster: %s", i, err)}
		}
		c.Files = append(c.Files, bootstrap.File{Path: f.Path, Content: f.Content, Mode: mode})
	}
	for _, u := range b.Units {
		c.Units = append(c.Units, bootstrap.Unit{Name: u.Name, Content: u.Content, Enabled: u.Enabled})
	}
	return nil
}

// applyArtifacts takes over where artifacts are and what their digests are.
func (r *Resolver) applyArtifacts(ctx context.Context, c *bootstrap.Config, owner *clusterv1alpha1.Cluster) error {
	artifacts := owner.Spec.Bootstrap.Artifacts
	if artifacts == nil {
		return nil
	}
	set(&c.ArtifactMirror, artifacts.Mirror)
	if artifacts.DigestsConfigMap == nil {
		return nil
	}
	from := dataKey{types.NamespacedName{Namespace: owner.Namespace, Name: artifacts.DigestsConfigMap.Name}, bootstrap.DigestsKey}
	digests, err := r.digests.read(ctx, from, "spec.bootstrap.artifacts.digestsConfigMap of the Cluster")
	c.Digests = digests
	return err
}

// parseDigests parses the digests of artifacts.
func parseDigests(from dataKey, data map[string]string) (map[string]string, error) {
	digests := bootstrap.ReadDigests(data[from.key])
	if len(digests) == 0 {
		return nil, &IncompleteError{Message: fmt.Sprintf("ConfigMap %s: key %s has no line \"SHA256  HOST/PATH\"", from.NamespacedName, from.key)}
	}
	return digests, nil
}

func set(field *string, value string) {
	if value != "" {
		*field = value
	}
}

func setBytes(field *[]byte, value string) {
	if value != "" {
		*field = []byte(value)
	}
}

func setList(field *[]string, values []string) {
	if len(values) > 0 {
		*field = values
	}
}
