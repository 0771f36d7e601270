package discovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/template"
)

// templatesName names templates: a ConfigMap and the operating system that they are for.
type templatesName struct {
	types.NamespacedName
	system clusterv1alpha1.OperatingSystem
}

// readTemplates are templates, and when they were read.
type readTemplates struct {
	document *template.Document
	read     time.Time
}

// applyTemplates takes over the templates of the ConfigMap that a Machine or its Cluster names.
func (r *Resolver) applyTemplates(ctx context.Context, c *bootstrap.Config, m *clusterv1alpha1.Machine, name string) error {
	key := templatesName{types.NamespacedName{Namespace: m.Namespace, Name: name}, m.Spec.ProviderSpec.Value.OperatingSystem}
	var err error
	c.TemplatesFrom = "ConfigMap " + key.NamespacedName.String()
	c.Templates, err = r.readTemplates(ctx, key)
	return err
}

// readTemplates reads templates, at most once a minute.
func (r *Resolver) readTemplates(ctx context.Context, name templatesName) (*template.Document, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Clock.Now()
	if last, known := r.templates[name]; known && now.Sub(last.read) < kept {
		return last.document, nil
	}
	given := &corev1.ConfigMap{}
	err := r.o.ConfigMaps.Get(ctx, name.NamespacedName, given)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, &IncompleteError{Message: fmt.Sprintf("annotation %s: %s", clusterv1alpha1.BootstrapTemplatesAnnotation, err)}
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", name.NamespacedName, err)
	}
	text, has := given.Data[string(name.system)]
	if !has {
		return nil, &IncompleteError{Message: fmt.Sprintf("ConfigMap %s has no key %q", name.NamespacedName, name.system)}
	}
	document, err := template.Parse(text)
	if err != nil {
		return nil, &IncompleteError{Message: fmt.Sprintf("ConfigMap %s: key %s: %s", name.NamespacedName, name.system, err)}
	}
	r.templates[name] = readTemplates{document: document, read: now}
	return document, nil
}
