package csrapproval

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap/token"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

const (
	clientSigner = certificatesv1.KubeAPIServerClientKubeletSignerName
	serverSigner = certificatesv1.KubeletServingSignerName
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// fleet plays VMs and users in a namespace.
type fleet struct {
	*testing.T
	*controllertest.Cluster
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t, controllertest.New(t)}
	// What deploy/rbac ships for the VMs, and what the authorizer of Nodes would allow those.
	for group, name := range map[string]string{token.Group: "millwright-node-bootstrapper", "system:nodes": "nodes"} {
		err := f.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return f
}

// approve runs the approver.
func (f *fleet) approve() (stop func()) {
	f.Helper()
	return f.Manage(f.T, interceptor.Funcs{}, func(mgr ctrl.Manager) error {
		return Add(mgr, Options{Workload: mgr, MaxConcurrentReconciles: 8, Regarding: &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: f.Namespace}})
	})
}

func (f *fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// machine is one that has been asked for, and its token.
type machine struct {
	*clusterv1alpha1.Machine
	token string
}

// machine makes one, whose Node would be name.
func (f *fleet) machine(namespace, name string) machine {
	f.Helper()
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"test/hold"}},
		Spec: clusterv1alpha1.MachineSpec{
			ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
				CloudProvider: "sawmill", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
				CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
			}},
			Versions:   clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
			MachineUID: new("uid-" + namespace + "-" + name),
		},
	}
	f.check(f.Create(f.Context(), m))
	f.Cleanup(func() {
		_ = f.Patch(context.Background(), m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = f.Delete(context.Background(), m)
	})
	return machine{m, f.mint(m, time.Hour)}
}

// mint makes a Machine's token.
func (f *fleet) mint(m *clusterv1alpha1.Machine, life time.Duration) string {
	f.Helper()
	generated, err := bootstraputil.GenerateBootstrapToken()
	f.check(err)
	secret := token.NewSecret(token.Owner{UID: *m.Spec.MachineUID, Machine: client.ObjectKeyFromObject(m)}, generated[7:], time.Now().Add(life))
	f.check(f.Create(f.Context(), secret))
	f.Cleanup(func() { _ = f.Delete(context.Background(), secret) })
	read, err := token.Read(secret)
	f.check(err)
	return read.Value()
}

// joined has the Machine have its Node, as the controller of Machines writes it down.
func (f *fleet) joined(m machine, ip string) {
	f.Helper()
	node := f.node(m.Name, m.Namespace+"/"+m.Name)
	f.check(f.Get(f.Context(), client.ObjectKeyFromObject(m.Machine), m.Machine))
	m.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	f.check(f.Status().Update(f.Context(), m.Machine))
}

// node registers a Node.
func (f *fleet) node(name, machine string) *corev1.Node {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if machine != "" {
		node.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: machine}
	}
	f.check(f.Create(f.Context(), node))
	f.Cleanup(func() { _ = f.Delete(context.Background(), node) })
	return node
}

// withToken is the API server as the VM sees it.
func (f *fleet) withToken(value string) client.Client {
	f.Helper()
	return f.As(f.T, func(c *rest.Config) {
		*c = rest.Config{Host: c.Host, TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData}, BearerToken: value, QPS: -1}
	})
}

// as is the API server as somebody of these groups sees it.
func (f *fleet) as(user string, groups ...string) client.Client {
	f.Helper()
	return f.As(f.T, func(c *rest.Config) { c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups} })
}

// request is what a kubelet asks for. The zero value of a field means what a kubelet would say.
type request struct {
	signer        string
	node          string
	organizations []string
	dns, ips      []string
	emails        []string
	extensions    []pkix.Extension
	usages        []certificatesv1.KeyUsage
	key           crypto.Signer
	// text changes the PEM text.
	text func([]byte) []byte
}

var keyOfTests = sync.OnceValue(func() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// send sends the request, and returns what the API server made of it.
func (f *fleet) send(by client.Client, r request) *certificatesv1.CertificateSigningRequest {
	f.Helper()
	if r.key == nil {
		r.key = keyOfTests()
	}
	if r.organizations == nil {
		r.organizations = []string{"system:nodes"}
	}
	if r.usages == nil {
		r.usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
		if r.signer == serverSigner {
			r.usages[1] = certificatesv1.UsageServerAuth
		}
	}
	content := x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + r.node, Organization: r.organizations},
		DNSNames: r.dns, EmailAddresses: r.emails, ExtraExtensions: r.extensions,
	}
	for _, ip := range r.ips {
		content.IPAddresses = append(content.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &content, r.key)
	f.check(err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if r.text != nil {
		text = r.text(text)
	}
	object := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: r.signer, Usages: r.usages, Request: text,
		},
	}
	f.Eventually(f.T, func() string {
		err := by.Create(f.Context(), object)
		if apierrors.IsUnauthorized(err) {
			return "the API server does not know the token yet"
		}
		f.check(err)
		return ""
	})
	f.Cleanup(func() { _ = f.Delete(context.Background(), object) })
	return object
}

// verdict is how a request was decided: Approved, or the rule of a refusal; empty while it is not.
func (f *fleet) verdict(o *certificatesv1.CertificateSigningRequest) string {
	f.Helper()
	f.check(f.Get(f.Context(), client.ObjectKeyFromObject(o), o))
	if len(o.Status.Conditions) == 0 {
		return ""
	}
	if c := o.Status.Conditions[0]; c.Type != certificatesv1.CertificateApproved {
		return c.Reason
	}
	return approved
}

// awaitVerdict waits until the request is decided, and says if that is not as it should be.
func (f *fleet) awaitVerdict(what string, o *certificatesv1.CertificateSigningRequest, want string) {
	f.Helper()
	var got string
	f.Eventually(f.T, func() string {
		if got = f.verdict(o); got == "" {
			return fmt.Sprintf("%s (%s) is not decided", what, o.Name)
		}
		return ""
	})
	if got != want {
		f.Errorf("%s: %s, want %s", what, got, want)
	}
}
