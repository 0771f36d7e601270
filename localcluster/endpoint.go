package localcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const loopback = "127.0.0.1"

// Endpoint says how machines reach the API server. The zero value is for processes of this machine
// alone.
type Endpoint struct {
	// BindAddress is the IPv4 address that the API server listens on: 127.0.0.1, which is the
	// default, or 0.0.0.0. Use the latter in a network namespace of its own only: others would
	// reach the API server, too. The port is the cluster's choice either way.
	BindAddress string
	// Host is the address or name by which machines reach the API server; empty: 127.0.0.1. The
	// ConfigMap kube-public/cluster-info names it with the port, and the serving certificate has
	// it. A VM in a user network of QEMU reaches this machine's loopback as 10.0.2.2.
	Host string
	// Names are further addresses and names in the API server's certificate.
	Names []string
}

// withDefaults fills in what is unset, and refuses what cannot work.
func (e Endpoint) withDefaults() (Endpoint, error) {
	if e.BindAddress == "" {
		e.BindAddress = loopback
	}
	if e.Host == "" {
		e.Host = loopback
	}
	if !slices.Contains([]string{loopback, "0.0.0.0"}, e.BindAddress) {
		return e, fmt.Errorf("endpoint: BindAddress %q: use 127.0.0.1 or 0.0.0.0, since the control plane itself uses the loopback", e.BindAddress)
	}
	return e, nil
}

// servingNames are all that a client may call the API server by, but for those that each serving
// certificate has.
func (e Endpoint) servingNames() []string {
	return append([]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", e.Host}, e.Names...)
}

// Server returns the URL by which machines reach the API server: see [Endpoint].
func (c *Cluster) Server() string { return c.layout.server() }

func (l *layout) server() string {
	return "https://" + net.JoinHostPort(l.options.Endpoint.Host, strconv.Itoa(l.ports.port(apiServerPort)))
}

// The API server makes its namespaces itself, soon after it is ready.
const (
	namespaceInterval = 25 * time.Millisecond
	namespaceTimeout  = 20 * time.Second
)

// publishClusterInfo writes the ConfigMap kube-public/cluster-info, as kubeadm does: a kubeconfig
// without a user, that tells where the API server is and which authority to trust.
func (l *layout) publishClusterInfo(ctx context.Context, client kubernetes.Interface) error {
	ca, err := os.ReadFile(l.apiPKI.pair.cert)
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	cluster := clientcmdapi.NewCluster()
	cluster.Server, cluster.CertificateAuthorityData = l.server(), ca
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = cluster
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode cluster-info: %w", err)
	}
	info := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-info", Namespace: metav1.NamespacePublic},
		Data:       map[string]string{"kubeconfig": string(data)},
	}
	err = wait.PollUntilContextTimeout(ctx, namespaceInterval, namespaceTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(info.Namespace).Create(ctx, info, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("create ConfigMap kube-public/cluster-info: %w", err)
	}
	return nil
}
