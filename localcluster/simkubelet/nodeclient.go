package simkubelet

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// idleTimeout closes a connection that was still in use when its client was closed.
const idleTimeout = 5 * time.Second

// nodeClient is a kubelet's own client, over connections of its own: thousands of them must not
// stay open.
type nodeClient struct {
	kubernetes.Interface
	transport *http.Transport
}

// close closes the connections.
func (c *nodeClient) close() { c.transport.CloseIdleConnections() }

// newNodeClient returns a client with the certificate that was issued. Of the bootstrap kubeconfig
// it takes what a kubelet takes into the one that it writes: the server and the authority.
func newNodeClient(bootstrap *rest.Config, id identity) (*nodeClient, error) {
	config := &rest.Config{
		Host: bootstrap.Host, QPS: -1, UserAgent: bootstrap.UserAgent,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: bootstrap.Insecure, CAData: bootstrap.CAData, CertData: id.certificate, KeyData: id.key,
		},
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the kubelet's client: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout}
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("make the kubelet's client: %w", err)
	}
	return &nodeClient{Interface: client, transport: transport}, nil
}
