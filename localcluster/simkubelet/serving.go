package simkubelet

import (
	"context"
	"crypto/x509"
	"net"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

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
		got := s.requestUntilIssued(ctx, func(ctx context.Context) (identity, error) { return requestServing(ctx, client, node) })
		if len(got.certificate) > 0 {
			s.machine.credentials.noteServing()
			s.fleet.options.Log.Info("Kubelet has a serving certificate", "node", node.Name)
		}
	})
}

// requestServing requests a certificate for the names and addresses of a Node once.
func requestServing(ctx context.Context, client kubernetes.Interface, node *corev1.Node) (identity, error) {
	names, addresses := servingNames(node.Status.Addresses)
	return request(ctx, client, certificateRequest{
		signer: certificatesv1.KubeletServingSignerName, usage: certificatesv1.UsageServerAuth,
		template: x509.CertificateRequest{Subject: nodeSubject(node.Name), DNSNames: names, IPAddresses: addresses},
	})
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
