package csrapproval

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/bootstrap/csr"
	"github.com/millwright-dev/millwright/core/bootstrap/token"
)

const (
	machines = 300
	approved = "Approved"
)

var ourGroups = []string{"system:bootstrappers", token.Group, "system:authenticated"}

// TestLIFE3_ThreeHundredMachinesJoinAmongForgeries: 300 machines ask for their first certificate at
// once, each with its own token, and get it. Those who forge requests meanwhile are refused, each
// by the name of the rule that it breaks.
func TestLIFE3_ThreeHundredMachinesJoinAmongForgeries(t *testing.T) {
	f := newFleet(t)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}
	f.check(f.Create(t.Context(), other))
	f.Others = []string{other.Name}
	fleet := make([]machine, machines)
	for i := range fleet {
		fleet[i] = f.machine(f.Namespace, fmt.Sprintf("%s-%d", f.Namespace, i))
	}
	forged := f.forgeries(other.Name)
	f.approve()

	var sending sync.WaitGroup
	requests := make([]*certificatesv1.CertificateSigningRequest, machines)
	began := time.Now()
	for worker := range 16 {
		sending.Go(func() {
			for i := worker; i < machines; i += 16 {
				requests[i] = f.send(f.withToken(fleet[i].token), request{signer: clientSigner, node: fleet[i].Name})
			}
		})
	}
	refused := map[string]*certificatesv1.CertificateSigningRequest{}
	for name, forgery := range forged {
		refused[name] = f.send(forgery.by, forgery.request)
	}
	sending.Wait()
	for i, r := range requests {
		f.awaitVerdict(fleet[i].Name, r, approved)
	}
	t.Logf("%d machines are approved %s after the first asked", machines, time.Since(began).Round(time.Millisecond))
	for name, r := range refused {
		f.awaitVerdict(name, r, forged[name].rule)
	}
	if len(forged) < 28 {
		t.Errorf("only %d forgeries", len(forged))
	}
	f.awaitRefusalsTold(refused)
}

// awaitRefusalsTold waits until Events tell by which rules each requestor was refused.
func (f *fleet) awaitRefusalsTold(refused map[string]*certificatesv1.CertificateSigningRequest) {
	f.Helper()
	f.Eventually(f.T, func() string {
		var all eventsv1.EventList
		f.check(f.List(f.Context(), &all))
		told := map[string]bool{}
		for _, e := range all.Items {
			told[e.Reason+" "+e.Action] = true
			_, rest, _ := strings.Cut(e.Note, "Certificate request ")
			request, _, _ := strings.Cut(rest, " ")
			told[request] = true
		}
		for name, r := range refused {
			// Two refusals of a Machine by one rule are one Event, with the first request's name.
			if rule := f.verdict(r); !told[r.Name] && !told[eventRefused+" "+rule] {
				return "no Event tells of " + name + ", by " + rule
			}
		}
		return ""
	})
}

// forgery is a request that must be refused, by whom it is sent, and the rule that refuses it.
type forgery struct {
	by client.Client
	request
	rule string
}

// forgeries makes machines whose tokens and names are misused, and the requests that do so.
func (f *fleet) forgeries(other string) map[string]forgery {
	f.Helper()
	name := func(of string) string { return f.Namespace + "-" + of }
	mallory, victim, twin := f.machine(f.Namespace, name("mallory")), f.machine(f.Namespace, name("victim")), f.machine(f.Namespace, name("twin"))
	second := f.machine(other, twin.Name)
	if isOlder(second.Machine, twin.Machine) {
		twin, second = second, twin // within one second chance decides who had the name first
	}
	late, leaving, gone := f.machine(f.Namespace, name("late")), f.machine(f.Namespace, name("leaving")), f.machine(f.Namespace, name("gone"))
	node, neighbour, deleted := f.machine(f.Namespace, name("node")), f.machine(f.Namespace, name("neighbour")), f.machine(f.Namespace, name("deleted"))
	f.joined(node, "192.0.2.1")
	f.joined(neighbour, "192.0.2.2")
	f.node(victim.Name, "")
	f.check(f.Delete(f.Context(), leaving.Machine))
	expired := f.as("system:bootstrap:"+token.ID(*late.Spec.MachineUID), ourGroups...)
	secret := &corev1.Secret{}
	f.check(f.Get(f.Context(), token.Key(token.ID(*late.Spec.MachineUID)), secret))
	token.SetExpiration(secret, time.Now().Add(-time.Minute))
	f.check(f.Update(f.Context(), secret))
	secret = &corev1.Secret{}
	f.check(f.Get(f.Context(), token.Key(token.ID(*deleted.Spec.MachineUID)), secret))
	f.check(f.Delete(f.Context(), secret))
	f.check(f.Patch(f.Context(), gone.Machine, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	f.check(f.Delete(f.Context(), gone.Machine))

	vm := f.withToken(mallory.token)
	itself := f.as("system:node:"+node.Name, "system:nodes", "system:authenticated")
	next := f.as("system:node:"+neighbour.Name, "system:nodes", "system:authenticated")
	extra := f.as("system:bootstrap:"+token.ID(*mallory.Spec.MachineUID), append([]string{"system:nodes"}, ourGroups...)...)
	unknown := f.as("system:bootstrap:"+token.ID(*deleted.Spec.MachineUID), ourGroups...)
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	f.check(err)
	isCA := []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
	own, thief := mallory.Name, f.withToken(f.machine(f.Namespace, name("thief")).token)
	return map[string]forgery{
		"another machine's Node name":        {thief, request{signer: clientSigner, node: name("0")}, csr.RuleNodeName},
		"a Node that exists":                 {f.withToken(victim.token), request{signer: clientSigner, node: victim.Name}, csr.RuleNodeExists},
		"two machines for one name":          {f.withToken(second.token), request{signer: clientSigner, node: twin.Name}, csr.RuleNodeNameTaken},
		"an extra SAN":                       {vm, request{signer: clientSigner, node: own, dns: []string{own}}, csr.RuleSubjectAltNames},
		"an extra group":                     {extra, request{signer: clientSigner, node: own}, csr.RuleGroups},
		"an expired token":                   {expired, request{signer: clientSigner, node: late.Name}, csr.RuleTokenExpired},
		"the token of a machine that joined": {unknown, request{signer: clientSigner, node: deleted.Name}, csr.RuleTokenUnknown},
		"the token of a machine that goes":   {f.withToken(leaving.token), request{signer: clientSigner, node: leaving.Name}, csr.RuleMachineDeleting},
		"the token of a machine that went":   {f.withToken(gone.token), request{signer: clientSigner, node: gone.Name}, csr.RuleMachineGone},
		"an extra organization": {
			vm, request{signer: clientSigner, node: own, organizations: []string{"system:nodes", "system:masters"}}, csr.RuleSubject,
		},
		"another organization": {vm, request{signer: clientSigner, node: own, organizations: []string{"system:masters"}}, csr.RuleSubject},
		"wrong usages": {vm, request{signer: clientSigner, node: own, usages: []certificatesv1.KeyUsage{
			certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth,
		}}, csr.RuleUsages},
		"a server's certificate with a token": {
			vm, request{signer: serverSigner, node: own, dns: []string{own}}, csr.RuleRequestor,
		},
		"a renewal by a stranger":              {next, request{signer: clientSigner, node: node.Name}, csr.RuleRequestor},
		"a renewal of one that waits":          {next, request{signer: clientSigner, node: own}, csr.RuleRequestor},
		"a server's certificate by a stranger": {next, request{signer: serverSigner, node: node.Name, ips: []string{"192.0.2.1"}}, csr.RuleRequestor},
		"the address of another":               {itself, request{signer: serverSigner, node: node.Name, ips: []string{"192.0.2.2"}}, csr.RuleAddress},
		"a loopback address":                   {itself, request{signer: serverSigner, node: node.Name, ips: []string{"127.0.0.1"}}, csr.RuleLocalAddress},
		"the metadata service's address":       {itself, request{signer: serverSigner, node: node.Name, ips: []string{"169.254.169.254"}}, csr.RuleLocalAddress},
		"the API server's name":                {itself, request{signer: serverSigner, node: node.Name, dns: []string{"kubernetes.default"}}, csr.RuleServiceName},
		"a Service's name":                     {itself, request{signer: serverSigner, node: node.Name, dns: []string{node.Name, "db.prod.svc.cluster.local"}}, csr.RuleServiceName},
		"the name of another":                  {itself, request{signer: serverSigner, node: node.Name, dns: []string{neighbour.Name}}, csr.RuleDNSName},
		"an email address":                     {itself, request{signer: serverSigner, node: node.Name, emails: []string{"a@b"}}, csr.RuleEmailOrURI},
		"a CA's certificate":                   {vm, request{signer: clientSigner, node: own, extensions: isCA}, csr.RuleExtensions},
		"a CA's certificate for a server":      {itself, request{signer: serverSigner, node: node.Name, ips: []string{"192.0.2.1"}, extensions: isCA}, csr.RuleExtensions},
		"a weak key":                           {vm, request{signer: clientSigner, node: own, key: small}, csr.RuleKey},
		"two PEM blocks":                       {vm, request{signer: clientSigner, node: own, text: func(b []byte) []byte { return slices.Concat(b, b) }}, csr.RuleFormat},
		"words behind the request":             {vm, request{signer: clientSigner, node: own, text: func(b []byte) []byte { return append(b, "words"...) }}, csr.RuleFormat},
		"a server without a name":              {itself, request{signer: serverSigner, node: node.Name}, csr.RuleNoAddress},
		"a renewal with an address of its own": {itself, request{signer: clientSigner, node: node.Name, ips: []string{"192.0.2.1"}}, csr.RuleSubjectAltNames},
	}
}

// TestLIFE3_TokenIsUsedUp: a kubelet that starts anew with new keys gets three certificates with
// one token, and no more, however fast it asks.
func TestLIFE3_TokenIsUsedUp(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	f.approve()
	vm := f.withToken(m.token)
	for i := range 3 {
		f.awaitVerdict(fmt.Sprintf("request %d", i), f.send(vm, request{signer: clientSigner, node: m.Name}), approved)
	}
	fourth := f.send(vm, request{signer: clientSigner, node: m.Name})
	f.awaitVerdict("the fourth", fourth, csr.RuleTokenUsedUp)
	f.Eventually(t, func() string {
		var all eventsv1.EventList
		f.check(f.List(t.Context(), &all, client.InNamespace(f.Namespace)))
		for _, e := range all.Items {
			if e.Regarding.Name == m.Name && e.Reason == eventRefused && strings.Contains(e.Note, fourth.Name) && strings.Contains(e.Note, csr.RuleTokenUsedUp) {
				return ""
			}
		}
		return "no Event about the Machine tells of the refusal"
	})
}

// TestLIFE3_ManyRequestsAtOnceUseATokenUp: of twenty requests at once at most three are approved.
func TestLIFE3_ManyRequestsAtOnceUseATokenUp(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	f.approve()
	vm := f.withToken(m.token)
	requests := make([]*certificatesv1.CertificateSigningRequest, 20)
	var sending sync.WaitGroup
	for i := range requests {
		sending.Go(func() { requests[i] = f.send(vm, request{signer: clientSigner, node: m.Name}) })
	}
	sending.Wait()
	count := map[string]int{}
	for _, r := range requests {
		f.Eventually(t, func() string {
			if f.verdict(r) == "" {
				return r.Name + " is not decided"
			}
			return ""
		})
		count[f.verdict(r)]++
	}
	if count[approved] > 3 || count[approved]+count[csr.RuleTokenUsedUp] != len(requests) {
		t.Errorf("%v", count)
	}
}

// TestLIFE3_DeniedRequestsUseNoTokenUp: a kubelet that is refused for a Node of the machine before
// it asks again within seconds, with a new key each time. It joins once that Node is gone.
func TestLIFE3_DeniedRequestsUseNoTokenUp(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	old := f.node(m.Name, "")
	f.approve()
	vm := f.withToken(m.token)
	for i := range 4 {
		f.awaitVerdict(fmt.Sprintf("request %d", i), f.send(vm, request{signer: clientSigner, node: m.Name}), csr.RuleNodeExists)
	}
	f.check(f.Delete(t.Context(), old))
	f.awaitVerdict("the one without the old Node", f.send(vm, request{signer: clientSigner, node: m.Name}), approved)
}

// TestLIFE3_LastOfManyRequestsIsApproved: a kubelet without a certificate ends after five minutes,
// and starts with a new key. While core is away more requests pile up than a token is good for.
// The kubelet has the key of the last one.
func TestLIFE3_LastOfManyRequestsIsApproved(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	vm := f.withToken(m.token)
	requests := make([]*certificatesv1.CertificateSigningRequest, 6)
	for i := range requests {
		requests[i] = f.send(vm, request{signer: clientSigner, node: m.Name})
	}
	// Within a second the name decides.
	last := slices.MaxFunc(requests, func(a, b *certificatesv1.CertificateSigningRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	f.approve()
	f.awaitVerdict("the last", last, approved)
	count := 0
	for _, r := range requests {
		f.Eventually(t, func() string {
			if f.verdict(r) == "" {
				return r.Name + " is not decided"
			}
			return ""
		})
		if f.verdict(r) == approved {
			count++
		}
	}
	if count > 3 {
		t.Errorf("%d are approved", count)
	}
}

// TestLIFE3_NameOfAMissingNodeIsTaken: whose Node is gone for a while still has its name, also
// before its status says that the Node is gone. A Machine of that name elsewhere gets no
// certificate for it.
func TestLIFE3_NameOfAMissingNodeIsTaken(t *testing.T) {
	f := newFleet(t)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}
	f.check(f.Create(t.Context(), other))
	f.Others = []string{other.Name}
	thief := f.machine(other.Name, f.Namespace+"-a") // It is the older one, so that age decides nothing.
	m := f.machine(f.Namespace, thief.Name)
	f.joined(m, "192.0.2.1")
	f.approve()
	f.check(f.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}))
	f.awaitVerdict("the thief's", f.send(f.withToken(thief.token), request{signer: clientSigner, node: m.Name}), csr.RuleNodeNameTaken)
}

// TestLIFE3_ServingCertificateWaitsForTheStatus: a kubelet asks as soon as its Node is there,
// before the Machine's status names that. The request is decided when it does. Renewals are
// approved.
func TestLIFE3_ServingCertificateWaitsForTheStatus(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	stop := f.approve()
	kubelet := f.as("system:node:"+m.Name, "system:nodes", "system:authenticated")
	early := f.send(kubelet, request{signer: serverSigner, node: m.Name, dns: []string{m.Name}, ips: []string{"192.0.2.1"}})
	stop()
	if got := f.verdict(early); got != "" {
		t.Errorf("decided before the Node is there: %s", got)
	}
	f.approve()
	f.joined(m, "192.0.2.1")
	f.awaitVerdict("the one that waited", early, approved)
	for _, signer := range []string{clientSigner, serverSigner} {
		r := request{signer: signer, node: m.Name}
		if signer == serverSigner {
			r.ips = []string{"192.0.2.1"}
		}
		f.awaitVerdict("a renewal from "+signer, f.send(kubelet, r), approved)
	}
}

// TestLIFE3_PendingRequestsGoWithTheirMachine: a request that still waits when its Machine is
// deleted is denied then.
func TestLIFE3_PendingRequestsGoWithTheirMachine(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	f.node(m.Name, "")
	f.approve()
	kubelet := f.as("system:node:"+m.Name, "system:nodes", "system:authenticated")
	waiting := f.send(kubelet, request{signer: serverSigner, node: m.Name, dns: []string{m.Name}})
	f.check(f.Delete(t.Context(), m.Machine))
	f.awaitVerdict("the one that waits", waiting, csr.RuleMachineDeleting)
}

// TestLIFE3_OthersRequestsArePending: what is no machine's is left to others.
func TestLIFE3_OthersRequestsArePending(t *testing.T) {
	f := newFleet(t)
	m := f.machine(f.Namespace, f.Namespace+"-a")
	f.approve()
	f.node(f.Namespace+"-foreign", "")
	foreign := f.as("system:node:"+f.Namespace+"-foreign", "system:nodes", "system:authenticated")
	left := f.send(foreign, request{signer: clientSigner, node: f.Namespace + "-foreign"})
	kubeadm := f.send(f.as("system:bootstrap:aaaaaa", "system:bootstrappers", "system:nodes", "system:authenticated"),
		request{signer: clientSigner, node: f.Namespace + "-foreign2"})
	// Requests are decided in turn: once this one is, those before it have been seen.
	f.awaitVerdict("a machine's", f.send(f.withToken(m.token), request{signer: clientSigner, node: m.Name}), approved)
	for _, r := range []*certificatesv1.CertificateSigningRequest{left, kubeadm} {
		if got := f.verdict(r); got != "" {
			t.Errorf("%s of %s is decided: %s", r.Name, r.Spec.Username, got)
		}
	}
}

// TestLIFE3_NodeClientBindingIsToldOf: where any bootstrap token may be any Node, an Event says so.
func TestLIFE3_NodeClientBindingIsToldOf(t *testing.T) {
	f := newFleet(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:node-autoapprove-bootstrap"},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:bootstrappers"}},
	}
	f.check(f.Create(t.Context(), binding))
	defer func() { f.check(f.Delete(t.Context(), binding)) }()
	f.approve()
	f.Eventually(t, func() string {
		var all eventsv1.EventList
		f.check(f.List(t.Context(), &all))
		for _, e := range all.Items {
			if e.Reason == "BootstrapTokensMayBeAnyNode" && e.Regarding.Name == f.Namespace {
				return ""
			}
		}
		return "no Event tells of the binding"
	})
}
