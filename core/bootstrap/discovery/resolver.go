package discovery

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
)

// kept is for how long what was read of the cluster holds.
const kept = time.Minute

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

	mu      sync.Mutex
	facts   facts
	read    time.Time
	digests map[types.NamespacedName]digestList
	// templates are what ConfigMaps held for an operating system.
	templates map[templatesName]readTemplates
}

// digestList is what a ConfigMap said of artifacts, and when.
type digestList struct {
	digests map[string]string
	read    time.Time
}

// New returns a Resolver.
func New(o Options) *Resolver {
	return &Resolver{o: o, digests: map[types.NamespacedName]digestList{}, templates: map[templatesName]readTemplates{}}
}

// Config returns the configuration of a machine that may be made. What the user or the operator has
// to mend is an IncompleteError; any other error is that something could not be read just now.
func (r *Resolver) Config(ctx context.Context, m *clusterv1alpha1.Machine) (bootstrap.Config, error) {
	c := r.o.Flags
	templates := m.Annotations[clusterv1alpha1.BootstrapTemplatesAnnotation]
	if ref := m.Spec.ClusterRef; ref != nil {
		owner := &clusterv1alpha1.Cluster{}
		err := r.o.Management.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, owner)
		if apierrors.IsNotFound(err) {
			return c, &IncompleteError{Message: fmt.Sprintf("spec.clusterRef: there is no Cluster %s", ref.Name)}
		}
		if err != nil {
			return c, fmt.Errorf("read Cluster %s: %w", ref.Name, err)
		}
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

// discovered returns what the cluster says of itself, as it was within the last minute. While it
// cannot be read, the last answer holds.
func (r *Resolver) discovered(ctx context.Context) (facts, error) {
	last, isDue := r.lastFacts()
	if !isDue {
		return last, nil
	}
	found, err := readFacts(ctx, r.o.Workload)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && (r.read.IsZero() || !found.hasLostRights(r.facts)) {
		r.facts, r.read = found, r.o.Clock.Now()
	}
	if r.read.IsZero() {
		return facts{}, fmt.Errorf("read what machines join by: %w", err)
	}
	return r.facts, nil
}

// lastFacts returns what was read last, and whether the caller is to read it again. Where there is
// something, one caller does, and the others go on with it: a slow API server holds up nobody else.
func (r *Resolver) lastFacts() (last facts, isDue bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Clock.Now()
	if !r.read.IsZero() && now.Sub(r.read) < kept {
		return r.facts, false
	}
	if !r.read.IsZero() {
		r.read = now
	}
	return r.facts, true
}

// readDigests reads the ConfigMap of digests, at most once a minute.
func (r *Resolver) readDigests(ctx context.Context, name types.NamespacedName) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Clock.Now()
	if last, known := r.digests[name]; known && now.Sub(last.read) < kept {
		return last.digests, nil
	}
	list := &corev1.ConfigMap{}
	err := r.o.ConfigMaps.Get(ctx, name, list)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, &IncompleteError{Message: fmt.Sprintf("spec.bootstrap.artifacts.digestsConfigMap of the Cluster: %s", err)}
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	digests := bootstrap.ReadDigests(list.Data[bootstrap.DigestsKey])
	if len(digests) == 0 {
		return nil, &IncompleteError{Message: fmt.Sprintf("ConfigMap %s: key %s has no line \"SHA256  HOST/PATH\"", name, bootstrap.DigestsKey)}
	}
	r.digests[name] = digestList{digests: digests, read: now}
	return digests, nil
}

// serverURL is an endpoint as a URL.
func serverURL(e clusterv1alpha1.APIEndpoint) string {
	return "https://" + net.JoinHostPort(strings.Trim(e.Host, "[]"), strconv.Itoa(int(e.Port)))
}
