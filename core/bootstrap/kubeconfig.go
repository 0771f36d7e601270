package bootstrap

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Where kubeadm has them, too.
const (
	caPath         = "/etc/kubernetes/pki/ca.crt"
	clientCAPath   = "/etc/kubernetes/pki/client-ca.crt"
	kubeconfigPath = "/etc/kubernetes/bootstrap-kubelet.conf"
)

// secretMode is for what only root may read.
const secretMode = 0o600

// tokenPattern is a bootstrap token's. Source: k8s.io/cluster-bootstrap/token/api.
var tokenPattern = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// bootstrapKubeconfig is with what the kubelet asks for its first certificate.
func bootstrapKubeconfig(server, token string) (File, error) {
	if token != "" && !tokenPattern.MatchString(token) {
		return File{}, fmt.Errorf("the bootstrap token must have the form of abcdef.0123456789abcdef")
	}
	const name, user = "cluster", "bootstrap"
	encoded, err := json.Marshal(clientcmdv1.Config{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []clientcmdv1.NamedCluster{{Name: name, Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthority: caPath}}},
		AuthInfos:      []clientcmdv1.NamedAuthInfo{{Name: user, AuthInfo: clientcmdv1.AuthInfo{Token: token}}},
		Contexts:       []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: user}}},
		CurrentContext: name,
	})
	var content []byte
	if err == nil {
		content, err = jsonToYAML(encoded)
	}
	if err != nil {
		return File{}, fmt.Errorf("encode %s: %w", kubeconfigPath, err)
	}
	return File{Path: kubeconfigPath, Content: string(content), Mode: secretMode}, nil
}

// authorityFiles are whom the kubelet trusts: the API server's CA, and that of its own clients.
// They hold the certificates and nothing of what may stand between them.
func authorityFiles(_ *clusterv1alpha1.Machine, c Config) ([]File, error) {
	servers, err := parseBundle(c.CABundle)
	if err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	clients, err := parseBundle(c.ClientCABundle)
	if err != nil {
		return nil, fmt.Errorf("clientCABundle: %w", err)
	}
	if len(clients) == 0 {
		clients = servers
	}
	return []File{{Path: caPath, Content: encodeBundle(servers)}, {Path: clientCAPath, Content: encodeBundle(clients)}}, nil
}

// encodeBundle writes the certificates as PEM.
func encodeBundle(certificates []*x509.Certificate) string {
	var b strings.Builder
	for _, certificate := range certificates {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	}
	return b.String()
}
