package discovery

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/template"
)

// applyTemplates takes over the templates of the ConfigMap that a Machine or its Cluster names: its
// keys are operating systems.
func (r *Resolver) applyTemplates(ctx context.Context, c *bootstrap.Config, m *clusterv1alpha1.Machine, name string) error {
	from := dataKey{types.NamespacedName{Namespace: m.Namespace, Name: name}, string(m.Spec.ProviderSpec.Value.OperatingSystem)}
	var err error
	c.TemplatesFrom = "ConfigMap " + from.NamespacedName.String()
	c.Templates, err = r.templates.read(ctx, from, "annotation "+clusterv1alpha1.BootstrapTemplatesAnnotation)
	return err
}

// parseTemplates parses the templates for an operating system.
func parseTemplates(from dataKey, data map[string]string) (*template.Document, error) {
	text, has := data[from.key]
	if !has {
		return nil, &IncompleteError{Message: fmt.Sprintf("ConfigMap %s has no key %q", from.NamespacedName, from.key)}
	}
	document, err := template.Parse(text)
	if err != nil {
		return nil, &IncompleteError{Message: fmt.Sprintf("ConfigMap %s: key %s: %s", from.NamespacedName, from.key, err)}
	}
	return document, nil
}
