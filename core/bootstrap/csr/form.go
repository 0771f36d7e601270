package csr

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
	// minRSABits and minECDSABits are the sizes below which keys are refused.
	minRSABits, minECDSABits = 2048, 256
	// requestBlock is the type of the one PEM block that a request has.
	requestBlock = "CERTIFICATE REQUEST"
)

// Request is what is read of a CertificateSigningRequest.
type Request struct {
	signer, username string
	groups           []string
	createdAt        time.Time
	// node is the Node whose kubelet the certificate would be for, by its subject; empty where the
	// subject cannot be read, or is no kubelet's.
	node string
	// content is nil where the request cannot be read.
	content *x509.CertificateRequest
	// problem is the first rule that the request's form breaks; the zero value for none.
	problem refusal
}

// Read reads a request. One that nobody could read is one, too: Decide says what is wrong with it.
func Read(o *certificatesv1.CertificateSigningRequest) Request {
	r := Request{
		signer: o.Spec.SignerName, username: o.Spec.Username, groups: o.Spec.Groups, createdAt: o.CreationTimestamp.Time,
	}
	content, err := parse(o.Spec.Request)
	if err != nil {
		r.problem = refusal{RuleFormat, "The request is " + err.Error() + "."}
		return r
	}
	r.content = content
	r.node = cutName(content.Subject.CommonName, nodeUserPrefix)
	if !isKubeletSubject(content, r.node) {
		r.problem = refusal{RuleSubject, "The subject has to be CN=system:node:NAME, O=system:nodes and nothing else."}
		return r
	}
	if !areUsages(o.Spec.Usages, r.signer) {
		r.problem = refusal{RuleUsages, "The usages have to be digital signature, " + string(authentication(r.signer)) + " and, if any more, key encipherment."}
		return r
	}
	if why := weakness(content); why != "" {
		r.problem = refusal{RuleKey, why}
		return r
	}
	if !areExtensions(content) {
		r.problem = refusal{RuleExtensions, "Of extensions a request may have subject alternative names, once, and no other: above all none for a certificate that signs others."}
	}
	return r
}

// areExtensions says whether the request asks for nothing but names, which the rules of its kind
// judge. A signer need not take over extensions. It must not be left to it whether basic
// constraints or key usages of a CA get into a certificate.
func areExtensions(content *x509.CertificateRequest) bool {
	return len(content.Extensions) == 0 || len(content.Extensions) == 1 && hasNames(content)
}

// hasNames says whether the request has subject alternative names.
func hasNames(content *x509.CertificateRequest) bool {
	for _, extension := range content.Extensions {
		if extension.Id.String() == subjectAltNames {
			return true
		}
	}
	return false
}

// Node is the Node whose kubelet the certificate would be for; empty where that cannot be read.
func (r Request) Node() string { return r.node }

// TokenID is the id of the bootstrap token that the request was made with; empty for none.
func (r Request) TokenID() string { return cutName(r.username, bootstrapapi.BootstrapUserPrefix) }

// RequestorNode is the Node whose kubelet made the request; empty for none.
func (r Request) RequestorNode() string { return cutName(r.username, nodeUserPrefix) }

// IsFirst says whether the request is one for a kubelet's first certificate, made with a bootstrap
// token.
func (r Request) IsFirst() bool {
	return r.signer == certificatesv1.KubeAPIServerClientKubeletSignerName && r.TokenID() != ""
}

// IsKubelets says whether the request is to one of the two signers that sign for kubelets.
func (r Request) IsKubelets() bool {
	return r.signer == certificatesv1.KubeAPIServerClientKubeletSignerName || r.signer == certificatesv1.KubeletServingSignerName
}

// cutName is what follows on the prefix, if that is a name as objects have; empty else.
func cutName(text, prefix string) string {
	name, found := strings.CutPrefix(text, prefix)
	if !found || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// The errors say what a request is that cannot be read.
var (
	errBlocks    = errors.New("not one PEM block of type " + requestBlock)
	errContent   = errors.New("no PKCS#10 request")
	errSignature = errors.New("not signed with its own key")
)

// parse reads a PKCS#10 request that is one PEM block, and nothing else.
func parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != requestBlock || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 ||
		!bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN "+requestBlock)) {
		return nil, errBlocks
	}
	content, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errContent
	}
	if content.CheckSignature() != nil {
		return nil, errSignature
	}
	return content, nil
}

// isKubeletSubject says whether the subject is that of a Node's kubelet, and has nothing besides.
func isKubeletSubject(content *x509.CertificateRequest, node string) bool {
	return node != "" && slices.Equal(content.Subject.Organization, []string{nodesGroup}) && len(content.Subject.Names) == 2
}

// authentication is the usage that a signer's certificates are for.
func authentication(signer string) certificatesv1.KeyUsage {
	if signer == certificatesv1.KubeletServingSignerName {
		return certificatesv1.UsageServerAuth
	}
	return certificatesv1.UsageClientAuth
}

// areUsages says whether the usages are those that a signer's certificates may have.
func areUsages(usages []certificatesv1.KeyUsage, signer string) bool {
	left := slices.DeleteFunc(slices.Clone(usages), func(u certificatesv1.KeyUsage) bool { return u == certificatesv1.UsageKeyEncipherment })
	slices.Sort(left)
	want := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, authentication(signer)}
	slices.Sort(want)
	return slices.Equal(left, want)
}

// weakness says what is wrong with the key; empty for nothing.
func weakness(content *x509.CertificateRequest) string {
	switch key := content.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize >= minECDSABits {
			return ""
		}
	case *rsa.PublicKey:
		if key.N.BitLen() >= minRSABits {
			return ""
		}
	}
	return fmt.Sprintf("The key has to be an ECDSA key of at least %d bits, or an RSA key of at least %d.", minECDSABits, minRSABits)
}
