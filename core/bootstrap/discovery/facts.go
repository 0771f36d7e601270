package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Each object by its name, and nothing more.
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",namespace=kube-public,resources=configmaps,resourceNames=cluster-info,verbs=get
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",namespace=kube-system,resources=configmaps,resourceNames=kube-root-ca.crt;extension-apiserver-authentication;kubelet-config,verbs=get
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",namespace=kube-system,resources=services,resourceNames=kube-dns,verbs=get
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",namespace=default,resources=services,resourceNames=kubernetes,verbs=get
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=discovery.k8s.io,namespace=default,resources=endpointslices,resourceNames=kubernetes,verbs=get

// facts are what a cluster says of itself. A field that it does not say is empty.
type facts struct {
	server        string
	ca, clientCA  []byte
	clusterDNS    []string
	clusterDomain string
	// kubernetesService is the address of Service default/kubernetes, the first of the Services'.
	kubernetesService string
	// refused says why cluster-info was not taken, for an error's end.
	refused string
	// forbidden are the objects that may not be read, as NAMESPACE/NAME.
	forbidden []string
}

// readFacts reads them. What is not there, or may not be read, is not said.
func readFacts(ctx context.Context, reader client.Reader) (facts, error) {
	var f facts
	for _, read := range []func(context.Context, client.Reader) error{
		f.readClusterInfo, f.readEndpoint, f.readRootCA, f.readClientCA, f.readKubeletConfig, f.readServices,
	} {
		if err := read(ctx, reader); err != nil {
			return facts{}, err
		}
	}
	return f, nil
}

// get reads an object by its name; false is for one that is not there, or may not be read.
func (f *facts) get(ctx context.Context, reader client.Reader, namespace, name string, into client.Object) (bool, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsForbidden(err) {
		f.forbidden = append(f.forbidden, namespace+"/"+name)
		return false, nil
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s/%s: %w", namespace, name, err)
	}
	return true, nil
}

// errLostRights is why what a cluster says of itself is not believed.
var errLostRights = errors.New("what could be read before is forbidden")

// hasLostRights says whether anything may not be read that could be read before. For moments after
// its start an API server knows of no rights: what it says then is not what the cluster says.
func (f facts) hasLostRights(before facts) bool {
	return slices.ContainsFunc(f.forbidden, func(name string) bool { return !slices.Contains(before.forbidden, name) })
}

// readClusterInfo reads the kubeconfig that kubeadm publishes for those who join.
func (f *facts) readClusterInfo(ctx context.Context, reader client.Reader) error {
	info := &corev1.ConfigMap{}
	if found, err := f.get(ctx, reader, metav1.NamespacePublic, "cluster-info", info); !found {
		return err
	}
	var problem string
	if f.server, f.ca, problem = parseClusterInfo(info.Data["kubeconfig"]); problem != "" {
		f.refused = "; the one that is there " + problem
	}
	return nil
}

// parseClusterInfo returns the server and CA of a kubeconfig with one cluster, or what is wrong
// with it. A kubelet writes a kubeconfig of its own from these two alone: with anything more it
// would fail when it restarts.
func parseClusterInfo(text string) (server string, ca []byte, problem string) {
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return "", nil, "is no kubeconfig"
	}
	if len(config.Clusters) != 1 {
		return "", nil, fmt.Sprintf("has %d clusters, not one", len(config.Clusters))
	}
	for _, c := range config.Clusters {
		switch {
		case c.TLSServerName != "":
			return "", nil, "has a tls-server-name, which kubelets lose: give the API server's certificate the name that machines use"
		case c.ProxyURL != "":
			return "", nil, "has a proxy-url, which kubelets lose: set spec.bootstrap.httpProxy of the Machine's Cluster"
		}
		server, ca = c.Server, c.CertificateAuthorityData
	}
	return server, ca, ""
}

// readEndpoint takes an address of Service kubernetes, unless something better is known.
func (f *facts) readEndpoint(ctx context.Context, reader client.Reader) error {
	if f.server != "" {
		return nil
	}
	slice := &discoveryv1.EndpointSlice{}
	if found, err := f.get(ctx, reader, metav1.NamespaceDefault, "kubernetes", slice); !found {
		return err
	}
	for _, endpoint := range slice.Endpoints {
		for _, port := range slice.Ports {
			if f.server == "" && port.Port != nil && len(endpoint.Addresses) > 0 {
				f.server = serverURL(clusterv1alpha1.APIEndpoint{Host: endpoint.Addresses[0], Port: *port.Port})
			}
		}
	}
	return nil
}

// readRootCA takes the CA that pods check the API server with, unless a better one is known.
func (f *facts) readRootCA(ctx context.Context, reader client.Reader) error {
	if len(f.ca) > 0 {
		return nil
	}
	root := &corev1.ConfigMap{}
	found, err := f.get(ctx, reader, metav1.NamespaceSystem, "kube-root-ca.crt", root)
	if found {
		f.ca = []byte(root.Data["ca.crt"])
	}
	return err
}

// readClientCA takes the CA that the API server checks its own clients with.
func (f *facts) readClientCA(ctx context.Context, reader client.Reader) error {
	published := &corev1.ConfigMap{}
	found, err := f.get(ctx, reader, metav1.NamespaceSystem, "extension-apiserver-authentication", published)
	if found {
		f.clientCA = []byte(published.Data["client-ca-file"])
	}
	return err
}

// readKubeletConfig reads what kubeadm tells kubelets of the cluster's DNS.
func (f *facts) readKubeletConfig(ctx context.Context, reader client.Reader) error {
	published := &corev1.ConfigMap{}
	if found, err := f.get(ctx, reader, metav1.NamespaceSystem, "kubelet-config", published); !found {
		return err
	}
	var config kubeletv1beta1.KubeletConfiguration
	// It is another's: what cannot be read says nothing, and the next place is asked.
	if yaml.Unmarshal([]byte(published.Data["kubelet"]), &config) == nil {
		f.clusterDNS, f.clusterDomain = config.ClusterDNS, config.ClusterDomain
	}
	return nil
}

// readServices reads the address of the cluster's DNS, and that of the API server's Service.
func (f *facts) readServices(ctx context.Context, reader client.Reader) error {
	service := &corev1.Service{}
	if len(f.clusterDNS) == 0 {
		found, err := f.get(ctx, reader, metav1.NamespaceSystem, "kube-dns", service)
		if err != nil {
			return err
		}
		if found {
			f.clusterDNS = addresses(service)
		}
	}
	service = &corev1.Service{}
	found, err := f.get(ctx, reader, metav1.NamespaceDefault, "kubernetes", service)
	if found {
		f.kubernetesService = service.Spec.ClusterIP
	}
	return err
}

// addresses are those of a Service that has any.
func addresses(service *corev1.Service) []string {
	var all []string
	for _, text := range service.Spec.ClusterIPs {
		if _, err := netip.ParseAddr(text); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// tenthAddress is where kubeadm puts the cluster's DNS: the tenth address of the Services' range.
// Without a range it is counted from the first, which is that of Service kubernetes.
func tenthAddress(ranges []string, first string) []string {
	const tenth = 10
	address, err := netip.ParseAddr(first)
	steps := tenth - 1
	if len(ranges) > 0 {
		var prefix netip.Prefix
		prefix, err = netip.ParsePrefix(strings.TrimSpace(ranges[0]))
		address, steps = prefix.Masked().Addr(), tenth
	}
	if err != nil {
		return nil
	}
	for range steps {
		address = address.Next()
	}
	return []string{address.String()}
}
