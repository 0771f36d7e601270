package simkubelet

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
)

// certificateTimeout is how long a kubelet waits for its first certificate before it ends and
// systemd starts it again, as pkg/kubelet/certificate/bootstrap has it.
const certificateTimeout = time.Hour

// nodesGroup is the group of kubelets, and nodeUserPrefix what their user names begin with.
const (
	nodesGroup     = "system:nodes"
	nodeUserPrefix = "system:node:"
)

// startJoin has the VM's kubelet get its certificate, beside the VM's worker: approval takes as
// long as it takes. The worker goes on when that has come to an end; until then, calling startJoin
// again does nothing.
func (s *start) startJoin(ctx context.Context) {
	f, c, id := s.fleet, &s.machine.credentials, s.vm.GetId()
	ctx, ok := c.beginJoin(ctx)
	if !ok {
		return
	}
	f.joins.Go(func() {
		certificate, err := s.join(ctx)
		c.endJoin(certificate)
		if err != nil && ctx.Err() == nil {
			f.options.Log.Warn("Kubelet failed to get its certificate and will be started again", "vm", id, "node", s.node.Name, "error", err)
			f.queue.AddRateLimited(id)
			return
		}
		f.queue.Add(id)
	})
}

// join gets the kubelet's client certificate as the bootstrap user.
func (s *start) join(ctx context.Context) ([]byte, error) {
	key, err := s.machine.credentials.key()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(s.bootstrap)
	if err != nil {
		return nil, fmt.Errorf("make the bootstrap client: %w", err)
	}
	name, err := requestName(key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	return request(ctx, client, key, certificateRequest{
		name: name, signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usage: certificatesv1.UsageClientAuth,
		template: x509.CertificateRequest{Subject: nodeSubject(s.node.Name)},
	})
}

// certificateRequest is what differs from request to request. An empty name lets the API server
// choose one.
type certificateRequest struct {
	name, signer string
	usage        certificatesv1.KeyUsage
	template     x509.CertificateRequest
}

// request asks for a certificate and waits for it until ctx ends. The error says so when the
// request was denied.
func request(ctx context.Context, client kubernetes.Interface, key crypto.Signer, r certificateRequest) ([]byte, error) {
	data, err := certutil.MakeCSRFromTemplate(key, &r.template)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, r.usage}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, data, r.name, r.signer, nil, usages, key)
	if err != nil {
		return nil, fmt.Errorf("request certificate of %s: %w", r.signer, err)
	}
	certificate, err := csr.WaitForCertificate(ctx, client, name, uid)
	if err != nil {
		return nil, fmt.Errorf("wait for certificate of %s: %s: %w", r.signer, name, err)
	}
	return certificate, nil
}

// requestName names the request after its key: a kubelet that starts again finds the one that it
// has made, with its denial, if it was denied.
func requestName(key crypto.Signer) (string, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(public)
	return "node-csr-" + base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func nodeSubject(nodeName string) pkix.Name {
	return pkix.Name{CommonName: nodeUserPrefix + nodeName, Organization: []string{nodesGroup}}
}
