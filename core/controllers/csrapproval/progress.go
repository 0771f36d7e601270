package csrapproval

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap/token"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// Progress returns a function that tells how far the VM of a Machine without a Node has got: what
// became of the newest client certificate that it requested with its token, and whether any was
// approved. requests is the cache of the cluster of the Nodes, which Add has given its index.
func Progress(requests client.Reader) func(context.Context, *clusterv1alpha1.Machine) (lifecycle.JoinProgress, error) {
	facts := factReader{requests: requests}
	return func(ctx context.Context, m *clusterv1alpha1.Machine) (lifecycle.JoinProgress, error) {
		all, err := facts.requestsOf(ctx, requestorOf(m))
		if err != nil {
			return lifecycle.JoinProgress{}, err
		}
		return progress(all), nil
	}
}

// progress says what became of the requests that were made with a machine's token. An older one
// that was approved counts, too: its kubelet may have the certificate.
func progress(all []certificatesv1.CertificateSigningRequest) lifecycle.JoinProgress {
	var newest *certificatesv1.CertificateSigningRequest
	approved := false
	for i := range all {
		if all[i].Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
			continue
		}
		approved = approved || isApproved(&all[i])
		if newest == nil || newest.CreationTimestamp.Before(&all[i].CreationTimestamp) {
			newest = &all[i]
		}
	}
	became := describeNewest(newest)
	became.Approved = approved
	return became
}

// describeNewest says what became of the newest request; newest is nil where there is none. A
// kubelet that is refused asks again each half a minute. A refusal is told without the request's
// name, else each new request would change the Machine's status.
func describeNewest(newest *certificatesv1.CertificateSigningRequest) lifecycle.JoinProgress {
	if newest == nil {
		return lifecycle.JoinProgress{Message: "Its kubelet has requested no certificate"}
	}
	became := lifecycle.JoinProgress{Message: fmt.Sprintf("Its kubelet's certificate request %s is not decided", newest.Name)}
	for _, c := range newest.Status.Conditions {
		switch why := fmt.Sprintf("(%s): %s", c.Reason, strings.TrimSuffix(c.Message, ".")); c.Type {
		case certificatesv1.CertificateApproved:
			became.Message = fmt.Sprintf("Its kubelet's certificate request %s is approved, and nobody has signed it", newest.Name)
		case certificatesv1.CertificateDenied:
			became = lifecycle.JoinProgress{Message: "Its kubelet's certificate requests are denied " + why, Refused: true}
		case certificatesv1.CertificateFailed:
			became = lifecycle.JoinProgress{Message: "The signer refuses its kubelet's certificate requests " + why, Refused: true}
		}
	}
	if len(newest.Status.Certificate) > 0 {
		became.Message = fmt.Sprintf("Its kubelet has a certificate, by request %s, and has registered no Node", newest.Name)
	}
	return became
}

// requestorOf is the user name of whoever has the Machine's bootstrap token.
func requestorOf(m *clusterv1alpha1.Machine) string {
	return bootstrapapi.BootstrapUserPrefix + token.ID(ptr.Deref(m.Spec.MachineUID, ""))
}
