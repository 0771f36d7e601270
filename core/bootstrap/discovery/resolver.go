package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/template"
)

// IncompleteError says what cannot be found, or is wrong, and where to put it right.
type IncompleteError struct {
	// Message is for people.
	Message string
}

func (e *IncompleteError) Error() string { return e.Message }

// Options of a Resolver. All but Flags are required.
type Options struct {
	// Flags are what the operator said for all machines. The zero value of a field: nothing.
	Flags bootstrap.Config
	// Management reads Clusters, from a cache.
	Management client.Reader
	// ConfigMaps reads the ConfigMaps that Clusters name, from the API server.
	ConfigMaps client.Reader
	// Workload reads the cluster that machines join, from its API server.
	Workload client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Resolver finds configurations. It is safe for concurrent use.
type Resolver struct {
	o Options

	facts     Answer[facts]
	digests   configMaps[map[string]string]
	templates configMaps[*template.Document]
}

// New returns a Resolver.
func New(o Options) *Resolver {
	return &Resolver{
		o:         o,
		digests:   configMaps[map[string]string]{live: o.ConfigMaps, clock: o.Clock, parse: parseDigests},
		templates: configMaps[*template.Document]{live: o.ConfigMaps, clock: o.Clock, parse: parseTemplates},
	}
}

// Config returns the configuration of a machine that may be made. What the user or the operator has
// to mend is an IncompleteError; any other error is that something could not be read just now.
func (r *Resolver) Config(ctx context.Context, m *clusterv1alpha1.Machine) (bootstrap.Config, error) {
	c := r.o.Flags
	templates := m.Annotations[clusterv1alpha1.BootstrapTemplatesAnnotation]
	owner, err := r.owner(ctx, m)
	if err != nil {
		return c, err
	}
	if owner != nil {
		if err := r.applyCluster(ctx, &c, owner); err != nil {
			return c, err
		}
		templates = cmp.Or(templates, owner.Annotations[clusterv1alpha1.BootstrapTemplatesAnnotation])
	}
	if templates != "" {
		if err := r.applyTemplates(ctx, &c, m, templates); err != nil {
			return c, err
		}
	}
	external, said, err := bootstrap.AnnotatedExternalCloudProvider(m.Annotations)
	if err != nil {
		return c, &IncompleteError{Message: err.Error()}
	}
	if said {
		c.ExternalCloudProvider = external
	}
	if isComplete(c) {
		return c, nil
	}
	found, err := r.discovered(ctx)
	if err != nil {
		return c, err
	}
	return c, found.complete(&c)
}

// StartupTaints returns the StartupTaints of the machine's configuration. Nothing is discovered for
// them. Where the Cluster does not exist, they are the operator's.
func (r *Resolver) StartupTaints(ctx context.Context, m *clusterv1alpha1.Machine) ([]corev1.Taint, error) {
	owner, err := r.owner(ctx, m)
	if _, incomplete := errors.AsType[*IncompleteError](err); err != nil && !incomplete {
		return nil, err
	}
	return r.startupTaints(owner), nil
}

// owner returns the Cluster that the machine refers to, nil for none.
func (r *Resolver) owner(ctx context.Context, m *clusterv1alpha1.Machine) (*clusterv1alpha1.Cluster, error) {
	ref := m.Spec.ClusterRef
	if ref == nil {
		return nil, nil
	}
	owner := &clusterv1alpha1.Cluster{}
	err := r.o.Management.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, owner)
	if apierrors.IsNotFound(err) {
		return nil, &IncompleteError{Message: fmt.Sprintf("spec.clusterRef: there is no Cluster %s", ref.Name)}
	}
	if err != nil {
		return nil, fmt.Errorf("read Cluster %s: %w", ref.Name, err)
	}
	return owner, nil
}

// isComplete says whether nothing is left to be discovered.
func isComplete(c bootstrap.Config) bool {
	return c.Server != "" && len(c.CABundle) > 0 && len(c.ClientCABundle) > 0 && len(c.ClusterDNS) > 0 && c.ClusterDomain != ""
}

// complete fills in what nobody said.
func (f facts) complete(c *bootstrap.Config) error {
	c.Server = cmp.Or(c.Server, f.server)
	c.ClusterDomain = cmp.Or(c.ClusterDomain, f.clusterDomain)
	if len(c.CABundle) == 0 {
		c.CABundle = f.ca
	}
	if len(c.ClientCABundle) == 0 {
		c.ClientCABundle = f.clientCA
	}
	if len(c.ClusterDNS) == 0 {
		c.ClusterDNS = f.clusterDNS
	}
	if len(c.ClusterDNS) == 0 {
		c.ClusterDNS = tenthAddress(c.ServiceCIDRs, f.kubernetesService)
	}
	var missing []string
	if c.Server == "" {
		missing = append(missing, "the API server's address: set spec.apiEndpoints of the Machine's Cluster, or --node-api-server, "+
			"or publish ConfigMap kube-public/cluster-info"+f.refused)
	}
	if len(c.CABundle) == 0 {
		missing = append(missing, "the API server's CA: set spec.bootstrap.caBundle of the Machine's Cluster, or --node-ca-bundle, "+
			"or publish ConfigMap kube-public/cluster-info or kube-system/kube-root-ca.crt")
	}
	if len(c.ClusterDNS) == 0 {
		missing = append(missing, "the address of the cluster's DNS: set spec.bootstrap.clusterDNS or spec.clusterNetwork.services of the Machine's Cluster, "+
			"or --node-cluster-dns, or make Service kube-system/kube-dns")
	}
	if len(missing) > 0 {
		return &IncompleteError{Message: "unknown is " + strings.Join(missing, "; ")}
	}
	return nil
}

// discovered returns what the cluster says of itself.
func (r *Resolver) discovered(ctx context.Context) (facts, error) {
	return r.facts.Get(r.o.Clock.Now(), func(last *facts) (facts, error) {
		found, err := readFacts(ctx, r.o.Workload)
		if err == nil && last != nil && found.hasLostRights(*last) {
			err = errLostRights
		}
		if err != nil {
			return facts{}, fmt.Errorf("read what machines join by: %w", err)
		}
		return found, nil
	})
}

// serverURL is an endpoint as a URL.
func serverURL(e clusterv1alpha1.APIEndpoint) string {
	return "https://" + net.JoinHostPort(strings.Trim(e.Host, "[]"), strconv.Itoa(int(e.Port)))
}
