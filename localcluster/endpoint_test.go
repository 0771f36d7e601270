package localcluster

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestMachinesFindTheAPIServer holds what a machine needs against what the cluster tells it.
func TestMachinesFindTheAPIServer(t *testing.T) {
	c := startCluster(t, Options{Endpoint: Endpoint{Host: "10.0.2.2", Names: []string{"api.example", "192.0.2.9"}}})
	info := clusterInfo(t, c)
	if info.Server != c.Server() || !strings.HasPrefix(info.Server, "https://10.0.2.2:") {
		t.Errorf("cluster-info names %s, the cluster %s; want https://10.0.2.2:PORT", info.Server, c.Server())
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(info.CertificateAuthorityData) {
		t.Fatal("cluster-info has no certificate authority")
	}
	address := strings.TrimPrefix(c.RESTConfig().Host, "https://")
	for _, name := range []string{"10.0.2.2", "api.example", "192.0.2.9", "127.0.0.1", "localhost", "kubernetes.default.svc"} {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, ServerName: name})
		if err != nil {
			t.Errorf("the API server is not %s: %v", name, err)
			continue
		}
		_ = connection.Close()
	}
}

func clusterInfo(t *testing.T, c *Cluster) *clientcmdapi.Cluster {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
	info, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.AuthInfos) > 0 || config.Clusters[""] == nil {
		t.Fatalf("cluster-info has users, or no cluster:\n%s", info.Data["kubeconfig"])
	}
	return config.Clusters[""]
}

func TestAPIServerMayUseKubelets(t *testing.T) {
	c := startCluster(t, Options{})
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
	for _, verb := range []string{"get", "create"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               KubeletClientUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "nodes", Subresource: "proxy"},
		}}
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !review.Status.Allowed {
			t.Errorf("the API server may not %s nodes/proxy: %s", verb, review.Status.Reason)
		}
	}
}
