package csrapproval

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/core/lifecycle"
)

func TestProgressTellsWhatBecameOfARequest(t *testing.T) {
	const approvedType, deniedType = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied
	type requests = []certificatesv1.CertificateSigningRequest
	requested := func(certificate string, conditions ...certificatesv1.CertificateSigningRequestCondition) requests {
		r := certificatesv1.CertificateSigningRequest{}
		r.Name, r.Status.Conditions, r.Status.Certificate = "csr-1", conditions, []byte(certificate)
		r.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		return requests{r}
	}
	condition := func(typ certificatesv1.RequestConditionType, reason, message string) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: typ, Reason: reason, Message: message}
	}
	later := func(name string) requests {
		r := requested("")
		r[0].Name, r[0].CreationTimestamp = name, metav1.Unix(1, 0)
		return r
	}
	for name, c := range map[string]struct {
		given requests
		want  lifecycle.JoinProgress
	}{
		"none":      {nil, lifecycle.JoinProgress{Message: "Its kubelet has requested no certificate"}},
		"undecided": {requested(""), lifecycle.JoinProgress{Message: "Its kubelet's certificate request csr-1 is not decided"}},
		"approved": {
			requested("", condition(approvedType, "MachineVerified", "")),
			lifecycle.JoinProgress{Message: "Its kubelet's certificate request csr-1 is approved, and nobody has signed it", Approved: true},
		},
		"signed": {
			requested("PEM", condition(approvedType, "MachineVerified", "")),
			lifecycle.JoinProgress{Message: "Its kubelet has a certificate, by request csr-1, and has registered no Node", Approved: true},
		},
		"denied": {
			requested("", condition(deniedType, "TokenExpired", "The token has expired.")),
			lifecycle.JoinProgress{Message: "Its kubelet's certificate requests are denied (TokenExpired): The token has expired", Refused: true},
		},
		"approved, and the signer fails": {
			requested("", condition(approvedType, "MachineVerified", ""), condition(certificatesv1.CertificateFailed, "SignerValidationFailure", "no")),
			lifecycle.JoinProgress{Message: "The signer refuses its kubelet's certificate requests (SignerValidationFailure): no", Refused: true},
		},
		"approved, and another with a new key": {
			append(requested("", condition(approvedType, "MachineVerified", "")), later("csr-2")...),
			lifecycle.JoinProgress{Message: "Its kubelet's certificate request csr-2 is not decided", Approved: true},
		},
		"to another signer": {
			func() requests {
				r := requested("PEM", condition(approvedType, "MachineVerified", ""))
				r[0].Spec.SignerName = certificatesv1.KubeletServingSignerName
				return r
			}(),
			lifecycle.JoinProgress{Message: "Its kubelet has requested no certificate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, progress(c.given)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
