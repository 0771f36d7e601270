package csrapproval

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/millwright-dev/millwright/core/lifecycle"
)

func TestProgressTellsWhatBecameOfARequest(t *testing.T) {
	const approvedType, deniedType = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied
	requested := func(certificate string, conditions ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
		r := &certificatesv1.CertificateSigningRequest{}
		r.Name, r.Status.Conditions, r.Status.Certificate = "csr-1", conditions, []byte(certificate)
		return r
	}
	condition := func(typ certificatesv1.RequestConditionType, reason, message string) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: typ, Reason: reason, Message: message}
	}
	for name, c := range map[string]struct {
		newest *certificatesv1.CertificateSigningRequest
		want   lifecycle.JoinProgress
	}{
		"none":      {nil, lifecycle.JoinProgress{Message: "Its kubelet has requested no certificate"}},
		"undecided": {requested(""), lifecycle.JoinProgress{Message: "Its kubelet's certificate request csr-1 is not decided"}},
		"approved": {
			requested("", condition(approvedType, "MachineVerified", "")),
			lifecycle.JoinProgress{Message: "Its kubelet's certificate request csr-1 is approved, and nobody has signed it"},
		},
		"signed": {
			requested("PEM", condition(approvedType, "MachineVerified", "")),
			lifecycle.JoinProgress{Message: "Its kubelet has a certificate, by request csr-1, and has registered no Node"},
		},
		"denied": {
			requested("", condition(deniedType, "TokenExpired", "The token has expired.")),
			lifecycle.JoinProgress{Message: "Its kubelet's certificate requests are denied (TokenExpired): The token has expired", Refused: true},
		},
		"approved, and the signer fails": {
			requested("", condition(approvedType, "MachineVerified", ""), condition(certificatesv1.CertificateFailed, "SignerValidationFailure", "no")),
			lifecycle.JoinProgress{Message: "The signer refuses its kubelet's certificate requests (SignerValidationFailure): no", Refused: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, progress(c.newest)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
