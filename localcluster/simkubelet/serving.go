package simkubelet

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/keyutil"
)

// servingTimeout is how long a kubelet waits for the certificate of its own API.
const servingTimeout = 15 * time.Minute

// servingBackoff is when it tries again, after that time or a refusal: after two seconds at first
// and half a minute at last, as client-go's util/certificate has it.
func servingBackoff() wait.Backoff {
	const first, last, steps = 2 * time.Second, 32 * time.Second, 5
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.1, Steps: steps, Cap: last}
}

// startServing has the VM's kubelet request a certificate for its own API, until it has one or the
// VM stops. It closes the client in the end.
func (s *start) startServing(ctx context.Context, node *corev1.Node, client *nodeClient) {
	ctx, ok := s.machine.credentials.untilOff(ctx)
	if !ok {
		client.close()
		return
	}
	s.fleet.joins.Go(func() {
		defer client.close()
		s.requestServingUntilIssued(ctx, node, client)
	})
}

func (s *start) requestServingUntilIssued(ctx context.Context, node *corev1.Node, client kubernetes.Interface) {
	log, backoff := s.fleet.options.Log, servingBackoff()
	for {
		err := requestServing(ctx, client, node)
		if err == nil {
			s.machine.credentials.noteServing()
			log.Info("Kubelet has a serving certificate", "node", node.Name)
			return
		}
		if ctx.Err() != nil {
			return
		}
		log.Warn("Kubelet got no serving certificate and will request another", "node", node.Name, "error", err)
		timer := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// requestServing requests a certificate for the names and addresses of a Node, with a new key each
// time.
func requestServing(ctx context.Context, client kubernetes.Interface, node *corev1.Node) error {
	data, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	key, err := parseKey(data)
	if err != nil {
		return err
	}
	names, addresses := servingNames(node.Status.Addresses)
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	_, err = request(ctx, client, key, certificateRequest{
		signer: certificatesv1.KubeletServingSignerName, usage: certificatesv1.UsageServerAuth,
		template: x509.CertificateRequest{Subject: nodeSubject(node.Name), DNSNames: names, IPAddresses: addresses},
	})
	return err
}

// servingNames are the names and the addresses that a kubelet puts into its request, each once and
// in order.
func servingNames(addresses []corev1.NodeAddress) (names []string, ips []net.IP) {
	for _, a := range addresses {
		ip := net.ParseIP(a.Address)
		switch a.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName:
			if ip != nil {
				ips = append(ips, ip)
			} else if a.Type == corev1.NodeHostName {
				names = append(names, a.Address)
			}
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			names = append(names, a.Address)
		}
	}
	slices.Sort(names)
	slices.SortFunc(ips, func(a, b net.IP) int { return slices.Compare(a.To16(), b.To16()) })
	return slices.Compact(names), slices.CompactFunc(ips, net.IP.Equal)
}
