package csr

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	id     = "abc123"
	client = certificatesv1.KubeAPIServerClientKubeletSignerName
	server = certificatesv1.KubeletServingSignerName
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

var keyOfTests = sync.OnceValue(func() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// sample is a request with all that it is decided by.
type sample struct {
	object  certificatesv1.CertificateSigningRequest
	content x509.CertificateRequest
	key     crypto.Signer
	facts   Facts
	// text changes the PEM text.
	text func([]byte) []byte
}

func newSample(signer string, authentication certificatesv1.KeyUsage) *sample {
	s := &sample{key: keyOfTests()}
	s.object.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	s.object.Spec.SignerName = signer
	s.object.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, authentication}
	s.content.Subject = pkix.Name{CommonName: "system:node:worker-1", Organization: []string{"system:nodes"}}
	s.facts = Facts{Now: now, SubjectIsMachines: true, Machine: &Machine{
		Key: types.NamespacedName{Namespace: "pool", Name: "worker-1"},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeExternalIP, Address: "2001:db8::1"},
			{Type: corev1.NodeInternalDNS, Address: "worker-1.internal"}, {Type: corev1.NodeInternalIP, Address: "no address"},
		},
	}}
	return s
}

// first is a kubelet's first request.
func first() *sample {
	s := newSample(client, certificatesv1.UsageClientAuth)
	s.object.Spec.Username = "system:bootstrap:" + id
	s.object.Spec.Groups = []string{"system:bootstrappers", "system:bootstrappers:millwright", "system:authenticated"}
	s.facts.Token = &Token{CreatedAt: now.Add(-time.Minute), ExpiresAt: now.Add(time.Minute)}
	s.facts.Requests = 1
	return s
}

// ofNode is a request of a Node that has joined.
func ofNode(signer string, authentication certificatesv1.KeyUsage) *sample {
	s := newSample(signer, authentication)
	s.object.Spec.Username = "system:node:worker-1"
	s.object.Spec.Groups = []string{"system:nodes", "system:authenticated"}
	s.facts.NodeExists, s.facts.Machine.NodeIsConfirmed = true, true
	return s
}

func renewal() *sample { return ofNode(client, certificatesv1.UsageClientAuth) }

func serving() *sample {
	s := ofNode(server, certificatesv1.UsageServerAuth)
	s.content.DNSNames = []string{"worker-1", "worker-1.internal"}
	s.content.IPAddresses = []net.IP{net.ParseIP("192.0.2.1"), net.ParseIP("2001:db8::1")}
	return s
}

func (s *sample) read(t testing.TB) Request {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &s.content, s.key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if s.text != nil {
		text = s.text(text)
	}
	s.object.Spec.Request = text
	return Read(&s.object)
}

// given changes a sample.
func given(s *sample, change func(*sample)) *sample {
	change(s)
	return s
}

func subject(name string, organizations ...string) func(*sample) {
	return func(s *sample) { s.content.Subject = pkix.Name{CommonName: name, Organization: organizations} }
}

func usages(u ...certificatesv1.KeyUsage) func(*sample) {
	return func(s *sample) { s.object.Spec.Usages = u }
}

func text(change func([]byte) []byte) func(*sample) { return func(s *sample) { s.text = change } }

func unreadable([]byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("no DER")})
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func addresses(ips ...string) func(*sample) {
	return func(s *sample) {
		s.content.IPAddresses = nil
		for _, ip := range ips {
			s.content.IPAddresses = append(s.content.IPAddresses, net.ParseIP(ip))
		}
	}
}

func dnsNames(names ...string) func(*sample) {
	return func(s *sample) { s.content.DNSNames = names }
}

// Identifiers of extensions (RFC 5280, 4.2.1.9 and 4.2.1.3), and CA:TRUE in DER.
var (
	basicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
	keyUsage         = asn1.ObjectIdentifier{2, 5, 29, 15}
	isCA             = []byte{0x30, 0x03, 0x01, 0x01, 0xff}
)

// extension adds an extension to the request.
func extension(id asn1.ObjectIdentifier, value ...byte) func(*sample) {
	return func(s *sample) {
		s.content.ExtraExtensions = append(s.content.ExtraExtensions, pkix.Extension{Id: id, Value: value})
	}
}

// TestLIFE3_ForgeriesAreRefusedByName: each request that is a machine's, or takes a machine's name,
// and breaks a rule is denied by that rule's name.
func TestLIFE3_ForgeriesAreRefusedByName(t *testing.T) {
	uri := &url.URL{Scheme: "spiffe", Host: "x"}
	_, ed25519Key, _ := ed25519.GenerateKey(rand.Reader)
	weak := rsaKey(t, 1024)
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		given *sample
		rule  string
	}{
		"another machine's Node name":      {given(first(), subject("system:node:worker-2", "system:nodes")), RuleNodeName},
		"a name that another Machine had":  {given(first(), func(s *sample) { s.facts.NameTakenBy = "other/worker-1" }), RuleNodeNameTaken},
		"the Node exists already":          {given(first(), func(s *sample) { s.facts.NodeExists = true }), RuleNodeExists},
		"an extra group":                   {given(first(), func(s *sample) { s.object.Spec.Groups = append(s.object.Spec.Groups, "system:masters") }), RuleGroups},
		"a group is missing":               {given(first(), func(s *sample) { s.object.Spec.Groups = []string{"system:bootstrappers:millwright"} }), RuleGroups},
		"another system's token":           {given(first(), func(s *sample) { s.object.Spec.Groups = []string{"system:bootstrappers:kubeadm"} }), RuleGroups},
		"an expired token":                 {given(first(), func(s *sample) { s.facts.Token.ExpiresAt = now }), RuleTokenExpired},
		"the token of a machine that went": {given(first(), func(s *sample) { s.facts.Token = nil }), RuleTokenUnknown},
		"a request older than its token":   {given(first(), func(s *sample) { s.facts.Token.CreatedAt = now }), RuleTokenYounger},
		"a token that is used up":          {given(first(), func(s *sample) { s.facts.Requests = 4 }), RuleTokenUsedUp},
		"one of many that are older":       {given(first(), func(s *sample) { s.facts.Requests, s.facts.Younger, s.facts.Older = 4, true, true }), RuleTokenUsedUp},
		"a token whose Machine is gone":    {given(first(), func(s *sample) { s.facts.Machine, s.facts.SubjectIsMachines = nil, false }), RuleMachineGone},
		"the token of a machine that goes": {given(first(), func(s *sample) { s.facts.Machine.Deleting = true }), RuleMachineDeleting},
		"a client with a DNS name":         {given(first(), func(s *sample) { s.content.DNSNames = []string{"worker-1"} }), RuleSubjectAltNames},
		"a client with an IP address":      {given(renewal(), addresses("192.0.2.1")), RuleSubjectAltNames},
		"a server's usages for a client": {
			given(first(), usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)), RuleUsages,
		},
		"a client's usages for a server": {
			given(serving(), usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth)), RuleUsages,
		},
		"both usages": {
			given(serving(), usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth)), RuleUsages,
		},
		"a usage that signs": {
			given(first(), usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageCertSign)), RuleUsages,
		},
		"too few usages":         {given(first(), usages(certificatesv1.UsageClientAuth)), RuleUsages},
		"an extra organization":  {given(first(), subject("system:node:worker-1", "system:nodes", "system:masters")), RuleSubject},
		"another organization":   {given(first(), subject("system:node:worker-1", "system:masters")), RuleSubject},
		"a name that is no Node": {given(first(), subject("kubernetes-admin", "system:nodes")), RuleSubject},
		"no name":                {given(first(), subject("system:node:", "system:nodes")), RuleSubject},
		"a name of two lines":    {given(first(), subject("system:node:a\nb", "system:nodes")), RuleSubject},
		"more in the subject":    {given(first(), func(s *sample) { s.content.Subject.OrganizationalUnit = []string{"x"} }), RuleSubject},
		"a key of 1024 bits":     {given(first(), func(s *sample) { s.key = weak }), RuleKey},
		"a key of another kind":  {given(first(), func(s *sample) { s.key = ed25519Key }), RuleKey},
		"two PEM blocks":         {given(first(), text(func(b []byte) []byte { return append(slices.Clone(b), b...) })), RuleFormat},
		"words before the block": {given(first(), text(func(b []byte) []byte { return append([]byte("words\n"), b...) })), RuleFormat},
		"words behind the block": {given(first(), text(func(b []byte) []byte { return append(b, "words\n"...) })), RuleFormat},
		"another block": {given(first(), text(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("CERTIFICATE REQUEST"), []byte("CERTIFICATE"))
		})), RuleFormat},
		"no block":           {given(first(), text(func([]byte) []byte { return nil })), RuleFormat},
		"a block of nothing": {given(first(), text(unreadable)), RuleFormat},
		"a header in the block": {given(first(), text(func(b []byte) []byte {
			return bytes.Replace(b, []byte("REQUEST-----\n"), []byte("REQUEST-----\nA: b\n\n"), 1)
		})), RuleFormat},
		"another's signature": {given(first(), text(func(b []byte) []byte {
			block, _ := pem.Decode(b)
			block.Bytes[len(block.Bytes)-1] ^= 1
			return pem.EncodeToMemory(block)
		})), RuleFormat},
		"a renewal by another machine's Node": {given(renewal(), func(s *sample) { s.object.Spec.Username = "system:node:worker-2" }), RuleRequestor},
		"a renewal by a user": {given(renewal(), func(s *sample) {
			s.object.Spec.Username, s.facts.Machine = "mallory", nil
		}), RuleRequestor},
		"a renewal without the Nodes' group":        {given(renewal(), func(s *sample) { s.object.Spec.Groups = nil }), RuleRequestor},
		"a renewal of a Machine that goes unjoined": {given(renewal(), func(s *sample) { s.facts.Machine.NodeIsConfirmed, s.facts.Machine.Deleting = false, true }), RuleMachineDeleting},
		"a server's certificate by a token": {given(first(), func(s *sample) {
			s.object.Spec.SignerName = server
			s.object.Spec.Usages[1] = certificatesv1.UsageServerAuth
		}), RuleRequestor},
		"a server's certificate by another Node": {given(serving(), func(s *sample) { s.object.Spec.Username = "system:node:worker-2" }), RuleRequestor},
		"an address of another machine":          {given(serving(), addresses("192.0.2.1", "192.0.2.2")), RuleAddress},
		"a loopback address":                     {given(serving(), addresses("127.0.0.1")), RuleLocalAddress},
		"IPv6's loopback address":                {given(serving(), addresses("::1")), RuleLocalAddress},
		"a link-local address":                   {given(serving(), addresses("169.254.169.254")), RuleLocalAddress},
		"IPv6's link-local address":              {given(serving(), addresses("fe80::1")), RuleLocalAddress},
		"no address at all":                      {given(serving(), addresses("0.0.0.0")), RuleLocalAddress},
		"a group's address":                      {given(serving(), addresses("224.0.0.1")), RuleLocalAddress},
		"a DNS name of somebody else":            {given(serving(), dnsNames("worker-2")), RuleDNSName},
		"a DNS name for all":                     {given(serving(), dnsNames("*.internal")), RuleDNSName},
		"this host's DNS name":                   {given(serving(), dnsNames("localhost")), RuleLocalAddress},
		"another one of this host":               {given(serving(), dnsNames("a.localhost")), RuleLocalAddress},
		"a Service's name":                       {given(serving(), dnsNames("db.prod.svc")), RuleServiceName},
		"a Service's name in the cluster":        {given(serving(), dnsNames("db.prod.svc.cluster.local")), RuleServiceName},
		"a Service's name in another domain":     {given(serving(), dnsNames("worker-1", "DB.Prod.SVC.example.com.")), RuleServiceName},
		"a name within a Service":                {given(serving(), dnsNames("db-0.db.prod.svc.cluster.local")), RuleServiceName},
		"the API server's name":                  {given(serving(), dnsNames("kubernetes.default.svc")), RuleServiceName},
		"the API server's short name":            {given(serving(), dnsNames("kubernetes.default")), RuleServiceName},
		"a Node called as the API server is": {given(serving(), func(s *sample) {
			s.content.Subject.CommonName, s.object.Spec.Username = "system:node:kubernetes", "system:node:kubernetes"
			s.content.DNSNames = []string{"kubernetes"}
		}), RuleServiceName},
		"a CA's certificate":                          {given(first(), extension(basicConstraints, isCA...)), RuleExtensions},
		"a key that signs":                            {given(first(), extension(keyUsage, 0x03, 0x02, 0x02, 0x04)), RuleExtensions},
		"a CA's certificate for a server, with names": {given(serving(), extension(basicConstraints, isCA...)), RuleExtensions},
		"a CA's certificate by renewal":               {given(renewal(), extension(basicConstraints, isCA...)), RuleExtensions},
		"another extension":                           {given(renewal(), extension(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}, 0x05, 0x00)), RuleExtensions},
		"an ECDSA key of 224 bits":                    {given(first(), func(s *sample) { s.key = small }), RuleKey},
		"an email address":                            {given(serving(), func(s *sample) { s.content.EmailAddresses = []string{"a@b"} }), RuleEmailOrURI},
		"a URI":                                       {given(serving(), func(s *sample) { s.content.URIs = []*url.URL{uri} }), RuleEmailOrURI},
		"a server without names": {given(serving(), func(s *sample) {
			s.content.DNSNames, s.content.IPAddresses = nil, nil
		}), RuleNoAddress},
		"a server of a Machine that goes without addresses": {given(serving(), func(s *sample) {
			s.facts.Machine.Addresses, s.facts.Machine.Deleting = nil, true
		}), RuleMachineDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.given.read(t), c.given.facts)
			if got.Verdict != Deny || got.Rule != c.rule || got.Message == "" {
				t.Errorf("%+v, want it denied by %s", got, c.rule)
			}
		})
	}
}

// TestLIFE3_KubeletsGetTheirCertificates: what a machine's kubelet asks for is approved, also each
// renewal, and while its Node is drained.
func TestLIFE3_KubeletsGetTheirCertificates(t *testing.T) {
	strong := rsaKey(t, 2048)
	for name, s := range map[string]*sample{
		"the first":                first(),
		"the third with its token": given(first(), func(s *sample) { s.facts.Requests, s.facts.Older, s.facts.Younger = 3, true, true }),
		"the youngest of three":    given(first(), func(s *sample) { s.facts.Requests, s.facts.Older = 3, true }),
		"in the token's second":    given(first(), func(s *sample) { s.facts.Token.CreatedAt = now.Add(-time.Second) }),
		"with an RSA key": given(first(), func(s *sample) {
			s.key = strong
			s.object.Spec.Usages = append(s.object.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}),
		"a renewal":                        renewal(),
		"a renewal of one that is drained": given(renewal(), func(s *sample) { s.facts.Machine.Deleting = true }),
		"a server's":                       serving(),
		"a server's of a domain called so": given(serving(), func(s *sample) {
			s.facts.Machine.Addresses[2].Address = "worker-1.svc"
			s.content.DNSNames = []string{"worker-1.svc"}
		}),
		"a server's with an address alone":  given(serving(), func(s *sample) { s.content.DNSNames = nil }),
		"a server's with a name alone":      given(serving(), addresses()),
		"a server's with IPv4 in IPv6 form": given(serving(), func(s *sample) { s.facts.Machine.Addresses[0].Address = "::ffff:192.0.2.1" }),
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(s.read(t), s.facts); got != (Decision{Verdict: Approve}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestWhatIsNotKnownYetWaits: the status of the Machine may be behind its Node.
func TestWhatIsNotKnownYetWaits(t *testing.T) {
	for name, c := range map[string]struct {
		given *sample
		names string
	}{
		"a Node that no status names yet": {given(serving(), func(s *sample) { s.facts.Machine.NodeIsConfirmed = false }), "Node worker-1"},
		"a Node that is not there":        {given(renewal(), func(s *sample) { s.facts.NodeExists = false }), "Node worker-1"},
		"what kubelets do not ask for, of a Node that no status names": {given(serving(), func(s *sample) {
			s.facts.Machine.NodeIsConfirmed, s.content.IPAddresses = false, []net.IP{net.IPv4(127, 0, 0, 1)}
		}), "Node worker-1"},
		"other usages, of a Node that no status names": {given(renewal(), func(s *sample) {
			s.facts.NodeExists, s.object.Spec.Usages = false, []certificatesv1.KeyUsage{certificatesv1.UsageAny}
		}), "Node worker-1"},
		"a Machine found by name alone": {given(serving(), func(s *sample) { s.facts.Machine = nil }), "Node worker-1"},
		"no addresses":                  {given(serving(), func(s *sample) { s.facts.Machine.Addresses = nil }), "Machine pool/worker-1"},
		"the youngest of too many":      {given(first(), func(s *sample) { s.facts.Requests, s.facts.Older = 4, true }), "Older requests"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.given.read(t), c.given.facts)
			if got.Verdict != Wait || got.Rule != "" || !strings.Contains(got.Message, c.names) {
				t.Errorf("%+v, want it to wait for what has to do with %s", got, c.names)
			}
		})
	}
}

// TestOthersRequestsAreLeftAlone: what has nothing to do with a machine is somebody else's.
func TestOthersRequestsAreLeftAlone(t *testing.T) {
	stranger := func(s *sample) { s.facts.Machine, s.facts.SubjectIsMachines = nil, false }
	for name, s := range map[string]*sample{
		"another signer": given(first(), func(s *sample) { s.object.Spec.SignerName = "kubernetes.io/kube-apiserver-client" }),
		"an unknown one": given(first(), func(s *sample) { s.object.Spec.SignerName = "example.com/signer" }),
		"another system's token": given(given(first(), stranger), func(s *sample) {
			s.object.Spec.Groups = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"}
		}),
		"a Node that is no Machine's":             given(renewal(), stranger),
		"a server of a Node that is no Machine's": given(serving(), stranger),
		"what cannot be read":                     given(given(renewal(), stranger), text(unreadable)),
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(s.read(t), s.facts); got != (Decision{Verdict: Ignore}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestRequestTellsWhatToReadForIt: by these the controller reads the facts.
func TestRequestTellsWhatToReadForIt(t *testing.T) {
	for name, c := range map[string]struct {
		given                   *sample
		node, tokenID, requests string
		isFirst                 bool
	}{
		"the first":  {first(), "worker-1", id, "", true},
		"a renewal":  {renewal(), "worker-1", "", "worker-1", false},
		"a server's": {serving(), "worker-1", "", "worker-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.given.read(t)
			if r.Node() != c.node || r.TokenID() != c.tokenID || r.RequestorNode() != c.requests || r.IsFirst() != c.isFirst || !r.IsKubelets() {
				t.Errorf("node %q, token %q, requestor %q, first %t", r.Node(), r.TokenID(), r.RequestorNode(), r.IsFirst())
			}
		})
	}
}

// FuzzRead: no text brings the reader down, and none that is approved is anything but a kubelet's.
func FuzzRead(f *testing.F) {
	for _, s := range []*sample{first(), renewal(), serving(), given(first(), text(unreadable))} {
		r := s.read(f)
		f.Add(s.object.Spec.Request, r.signer, r.username)
	}
	f.Fuzz(func(t *testing.T, text []byte, signer, username string) {
		s := first()
		s.object.Spec.Request, s.object.Spec.SignerName, s.object.Spec.Username = text, signer, username
		r := Read(&s.object)
		s.facts.NodeExists = true
		s.facts.Machine.NodeIsConfirmed = true
		got := Decide(r, s.facts)
		if got.Verdict == Approve && r.Node() != "worker-1" {
			t.Errorf("a certificate for Node %q is approved", r.Node())
		}
	})
}
