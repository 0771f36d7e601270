package simkubelet

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

const (
	// certificateTimeout is how long a kubelet runs without a client certificate before it ends, as
	// cmd/kubelet/app of Kubernetes has it. systemd starts it again after restartDelay, as
	// RestartSec in kubelet.service says.
	certificateTimeout, restartDelay = 5 * time.Minute, 10 * time.Second
	// requestTimeout is how long a kubelet waits for what becomes of one request, as client-go's
	// util/certificate has it.
	requestTimeout = 15 * time.Minute
)

// requestBackoff are the pauses between a kubelet's requests, after requestTimeout or a refusal:
// two seconds at first and half a minute at last, as client-go's util/certificate has it.
func requestBackoff() wait.Backoff {
	const first, last, steps = 2 * time.Second, 32 * time.Second, 5
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.1, Steps: steps, Cap: last}
}

// nodesGroup is the group of kubelets, and nodeUserPrefix what their user names begin with.
const (
	nodesGroup     = "system:nodes"
	nodeUserPrefix = "system:node:"
)

// startJoin has the VM's kubelet get its certificate, beside the VM's worker: approval takes as
// long as it takes. The worker goes on when that has come to an end; until then, calling startJoin
// again does nothing.
func (s *start) startJoin(ctx context.Context) {
	f, c := s.fleet, &s.machine.credentials
	ctx, ok := c.beginJoin(ctx)
	if !ok {
		return
	}
	f.joins.Go(func() {
		c.endJoin(s.join(ctx))
		f.queue.Add(s.vm.GetId())
	})
}

// join gets the kubelet's client certificate as the bootstrap user, in as many starts of the
// kubelet as that takes. What it returns is empty when ctx has ended.
func (s *start) join(ctx context.Context) identity {
	for {
		kubelet, end := context.WithTimeout(ctx, certificateTimeout)
		got := s.requestUntilIssued(kubelet, s.requestClient)
		end()
		if len(got.certificate) > 0 || !sleep(ctx, restartDelay) {
			return got
		}
	}
}

// requestClient requests the kubelet's client certificate once.
func (s *start) requestClient(ctx context.Context) (identity, error) {
	client, err := kubernetes.NewForConfig(s.bootstrap)
	if err != nil {
		return identity{}, fmt.Errorf("make the bootstrap client: %w", err)
	}
	return request(ctx, client, certificateRequest{
		signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usage: certificatesv1.UsageClientAuth,
		template: x509.CertificateRequest{Subject: nodeSubject(s.node.Name)},
	})
}

// requestUntilIssued has attempts made, with a kubelet's pauses, until one gets its certificate.
// What it returns is empty when ctx has ended.
func (s *start) requestUntilIssued(ctx context.Context, attempt func(context.Context) (identity, error)) identity {
	for backoff := requestBackoff(); ; {
		got, err := attempt(ctx)
		if err == nil {
			return got
		}
		if ctx.Err() != nil {
			return identity{}
		}
		s.fleet.options.Log.Warn("Kubelet got no certificate and will request another", "vm", s.vm.GetId(), "node", s.node.Name, "error", err)
		if !sleep(ctx, backoff.Step()) {
			return identity{}
		}
	}
}

// sleep returns true after d, and false when ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// certificateRequest is what differs from request to request.
type certificateRequest struct {
	signer   string
	usage    certificatesv1.KeyUsage
	template x509.CertificateRequest
}

// request asks for a certificate, with a new key and a name that the API server chooses, and waits
// for it until ctx ends, for requestTimeout at most. The error says so when the request was denied.
func request(ctx context.Context, client kubernetes.Interface, r certificateRequest) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	encoded, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return identity{}, fmt.Errorf("generate key: %w", err)
	}
	key, err := parseKey(encoded)
	if err != nil {
		return identity{}, err
	}
	data, err := certutil.MakeCSRFromTemplate(key, &r.template)
	if err != nil {
		return identity{}, fmt.Errorf("make certificate request: %w", err)
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, r.usage}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, data, "", r.signer, nil, usages, key)
	if err != nil {
		return identity{}, fmt.Errorf("request certificate of %s: %w", r.signer, err)
	}
	certificate, err := csr.WaitForCertificate(ctx, client, name, uid)
	if err != nil {
		return identity{}, fmt.Errorf("wait for certificate of %s: %s: %w", r.signer, name, err)
	}
	return identity{key: encoded, certificate: certificate}, nil
}

func nodeSubject(nodeName string) pkix.Name {
	return pkix.Name{CommonName: nodeUserPrefix + nodeName, Organization: []string{nodesGroup}}
}
