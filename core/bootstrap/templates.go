package bootstrap

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// fixedPaths are what no template replaces: who the machine is, whom it trusts, and what
// millwright-bootstrap reads. Those that end with a slash are folders.
var fixedPaths = []string{"/etc/kubernetes/", "/var/lib/kubelet/", "/etc/millwright/", "/etc/default/kubelet", hostnamePath}

// addTemplates fills in the operator's templates. What has the path of a file or the name of a unit
// that is there replaces it, but for fixedPaths.
func (all *contents) addTemplates(m *clusterv1alpha1.Machine, c Config) error {
	if c.Templates == nil {
		return nil
	}
	rendered, renderedUnits, err := c.Templates.Render(templateValues(m, c))
	if err != nil {
		return fmt.Errorf("%s: %w", c.TemplatesFrom, err)
	}
	var files []File
	replaced := map[string]bool{}
	for _, f := range rendered {
		isFixed := func(fixed string) bool {
			return f.Path == fixed || strings.HasSuffix(fixed, "/") && strings.HasPrefix(f.Path, fixed)
		}
		if slices.ContainsFunc(fixedPaths, isFixed) {
			return fmt.Errorf("%s: %s cannot be replaced", c.TemplatesFrom, f.Path)
		}
		files, replaced[f.Path] = append(files, File{Path: f.Path, Content: f.Content, Mode: f.Mode}), true
	}
	var units []Unit
	for _, u := range renderedUnits {
		units, replaced[path.Join(unitDirectory, u.Name)] = append(units, Unit{Name: u.Name, Content: u.Content, Enabled: u.Enabled}), true
	}
	all.files = slices.DeleteFunc(all.files, func(f File) bool { return replaced[f.Path] })
	all.units = slices.DeleteFunc(all.units, func(u Unit) bool { return replaced[path.Join(unitDirectory, u.Name)] })
	if err := all.addOwn(m, files, units); err != nil {
		return fmt.Errorf("%s: %w", c.TemplatesFrom, err)
	}
	return nil
}

// templateValues are what templates may print. There is no secret among them.
func templateValues(m *clusterv1alpha1.Machine, c Config) map[string]any {
	annotations := map[string]string{}
	maps.Copy(annotations, m.Annotations)
	return map[string]any{
		"machine": map[string]any{"name": m.Name, "namespace": m.Namespace, "labels": NodeLabels(m), "annotations": annotations},
		"kubelet": map[string]any{"version": kubeletVersion(m)},
		"cluster": map[string]any{
			"server": c.Server, "dns": c.ClusterDNS, "domain": clusterDomain(c), "pods": c.PodCIDRs, "services": c.ServiceCIDRs,
		},
		"operatingSystem": string(m.Spec.ProviderSpec.Value.OperatingSystem),
	}
}

// clusterDomain is the domain of Services.
func clusterDomain(c Config) string {
	if c.ClusterDomain == "" {
		return defaultDomain
	}
	return c.ClusterDomain
}
