package localcluster

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The name of the file of those who come from outside, and of the simulated kubelets; components
// have theirs by name.
const (
	adminFile      = "admin"
	simKubeletFile = "sim-kubelet"
)

// tokenLife is how long a ServiceAccount's kubeconfig works: longer than anybody leaves a local
// cluster running.
const tokenLife = 90 * 24 * time.Hour

// writeKubeconfigs makes a client certificate and a kubeconfig for everybody that talks to the API
// server.
func (l *layout) writeKubeconfigs() error {
	users := []struct {
		file, user string
		groups     []string
	}{
		{file: adminFile, user: "localcluster:admin", groups: []string{"system:masters"}},
		{file: ControllerManager, user: "system:kube-controller-manager"},
		{file: Scheduler, user: "system:kube-scheduler"},
		{file: Kwok, user: KwokUser},
		{file: simKubeletFile, user: SimKubeletUser},
	}
	for _, u := range users {
		pair, err := l.apiPKI.client(u.file, u.user, u.groups...)
		if err != nil {
			return err
		}
		info := clientcmdapi.NewAuthInfo()
		if info.ClientCertificateData, err = os.ReadFile(pair.cert); err != nil {
			return fmt.Errorf("read certificate of %s: %w", u.user, err)
		}
		if info.ClientKeyData, err = os.ReadFile(pair.key); err != nil {
			return fmt.Errorf("read key of %s: %w", u.user, err)
		}
		if err := l.writeKubeconfig(l.kubeconfigPath(u.file), u.user, info); err != nil {
			return err
		}
	}
	return nil
}

func (l *layout) kubeconfigPath(file string) string {
	if file == adminFile {
		return l.path("kubeconfig")
	}
	return l.path("config", file+".kubeconfig")
}

// writeKubeconfig writes a file that works from anywhere on this machine, readable by its owner
// alone.
func (l *layout) writeKubeconfig(path, user string, info *clientcmdapi.AuthInfo) error {
	const name = "local"
	ca, err := os.ReadFile(l.apiPKI.pair.cert)
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	cluster := clientcmdapi.NewCluster()
	cluster.Server = l.ports.url(apiServerPort)
	cluster.CertificateAuthorityData = ca
	kubeContext := clientcmdapi.NewContext()
	kubeContext.Cluster, kubeContext.AuthInfo = name, user
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[user] = info
	config.Contexts[name] = kubeContext
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return nil
}

// adminConfig returns the administrator's configuration for clients in this process, without a
// client-side rate limit: fairness is the API server's to keep.
func (l *layout) adminConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfigPath(adminFile))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// Kubeconfig returns the path of the administrator's kubeconfig, DIR/kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfigPath(adminFile) }

// SimKubeletKubeconfig returns the path of the kubeconfig for the process that plays the kubelets.
func (c *Cluster) SimKubeletKubeconfig() string { return c.layout.kubeconfigPath(simKubeletFile) }

// RESTConfig returns a copy of the administrator's configuration for clients in this process,
// without a rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigForServiceAccount writes a kubeconfig to path with which a process acts as an existing
// ServiceAccount, and has that account's rights and no others. It works for 90 days.
func (c *Cluster) KubeconfigForServiceAccount(ctx context.Context, namespace, name, path string) error {
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	response, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	info := clientcmdapi.NewAuthInfo()
	info.Token = response.Status.Token
	return c.layout.writeKubeconfig(path, "system:serviceaccount:"+namespace+":"+name, info)
}
