package simkubelet

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/localcluster"
)

// bootstrapGroup is the group of the tests' tokens.
const bootstrapGroup = "system:bootstrappers:millwright"

// guest is what the user data of a machine that joins is made of.
type guest struct {
	server, ca, token string
	args, taints      string
}

// newGuest returns a guest with a token of its own.
func newGuest(t *testing.T, name string) guest {
	t.Helper()
	return guest{
		server: cluster.Server(), ca: string(cluster.RESTConfig().CAData), token: newToken(t, time.Hour),
		args: "--hostname-override=" + name, taints: "[]",
	}
}

// files are the guest's, as docs/joining.md lists them.
func (g guest) files() map[string]string {
	return map[string]string{
		"/etc/default/kubelet":              "KUBELET_EXTRA_ARGS=\"" + g.args + "\"\n",
		"/etc/kubernetes/pki/ca.crt":        g.ca,
		"/etc/kubernetes/pki/client-ca.crt": string(cluster.RESTConfig().CAData),
		"/etc/kubernetes/bootstrap-kubelet.conf": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: default, cluster: {server: %q, certificate-authority: pki/ca.crt}}]
users: [{name: kubelet-bootstrap, user: {token: %q}}]
contexts: [{name: default, context: {cluster: default, user: kubelet-bootstrap}}]
current-context: default
`, g.server, g.token),
		"/var/lib/kubelet/config.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/pki/client-ca.crt}}
authorization: {mode: Webhook}
clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
rotateCertificates: true
serverTLSBootstrap: true
registerWithTaints: %s
`, g.taints),
	}
}

func (g guest) cloudConfig(t *testing.T) string {
	t.Helper()
	var files []map[string]string
	for path, content := range g.files() {
		files = append(files, map[string]string{"path": path, "content": content, "permissions": "0600"})
	}
	data, err := yaml.Marshal(map[string]any{"hostname": "unused", "write_files": files})
	if err != nil {
		t.Fatal(err)
	}
	return "#cloud-config\n" + string(data)
}

func (g guest) ignition(t *testing.T) string {
	t.Helper()
	var files []map[string]any
	for path, content := range g.files() {
		source := "data:;base64," + base64.StdEncoding.EncodeToString([]byte(content))
		files = append(files, map[string]any{"path": path, "mode": 0o600, "contents": map[string]string{"source": source}})
	}
	data, err := yaml.Marshal(map[string]any{"ignition": map[string]string{"version": "3.4.0"}, "storage": map[string]any{"files": files}})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// newToken makes a bootstrap token that expires after life.
func newToken(t *testing.T, life time.Duration) string {
	t.Helper()
	id, secret := rand.String(6), rand.String(16)
	_, err := admin(t).CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"auth-extra-groups": bootstrapGroup, "expiration": time.Now().Add(life).UTC().Format(time.RFC3339),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return id + "." + secret
}

// bindBootstrappers lets the group of the tokens request certificates, as deploy/rbac does.
func bindBootstrappers(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bootstrapGroup},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: bootstrapGroup}},
	}, metav1.CreateOptions{})
	return err
}

// approver stands in for Millwright: it approves the requests for the Nodes of one test, but for
// those that it is told to deny.
type approver struct {
	mu   sync.Mutex
	seen []*certificatesv1.CertificateSigningRequest
}

// runApprover approves requests for Nodes whose name begins with prefix until the test ends, and
// denies those for the Nodes named in denied.
func runApprover(t *testing.T, prefix string, denied ...string) *approver {
	t.Helper()
	a := &approver{}
	client := admin(t)
	ctx, cancel := context.WithCancel(t.Context())
	requests, err := client.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range requests.ResultChan() {
			if r, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && len(r.Status.Conditions) == 0 {
				a.decide(ctx, client, r, prefix, denied)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		requests.Stop()
		<-done
	})
	return a
}

func (a *approver) decide(ctx context.Context, client kubernetes.Interface, r *certificatesv1.CertificateSigningRequest, prefix string, denied []string) {
	name := strings.TrimPrefix(parseRequest(r).Subject.CommonName, nodeUserPrefix)
	if !strings.HasPrefix(name, prefix) {
		return
	}
	a.mu.Lock()
	known := slices.ContainsFunc(a.seen, func(s *certificatesv1.CertificateSigningRequest) bool { return s.UID == r.UID })
	if !known {
		a.seen = append(a.seen, r)
	}
	a.mu.Unlock()
	condition := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}
	if slices.Contains(denied, name) {
		condition.Type, condition.Message = certificatesv1.CertificateDenied, "the test denies it"
	}
	r = r.DeepCopy()
	r.Status.Conditions = append(r.Status.Conditions, condition)
	_, _ = client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{}) // The test ends, or the next event comes.
}

// of returns the requests of a signer for a Node.
func (a *approver) of(signer, node string) []*certificatesv1.CertificateSigningRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.seen), func(r *certificatesv1.CertificateSigningRequest) bool {
		return r.Spec.SignerName != signer || parseRequest(r).Subject.CommonName != nodeUserPrefix+node
	})
}

func parseRequest(r *certificatesv1.CertificateSigningRequest) *x509.CertificateRequest {
	block, _ := pem.Decode(r.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		panic(err)
	}
	return request
}

// noNodes lets no Node be created: a kubelet that joins does so as itself, not as the fleet's user.
type noNodes struct{ way http.RoundTripper }

func (n noNodes) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/nodes") {
		return nil, errors.New("the fleet's user makes no Nodes")
	}
	return n.way.RoundTrip(request)
}

// runJoining plays c's kubelets, which join by TLS bootstrap.
func runJoining(t *testing.T, c *cloud) (log *logBuffer, stop func()) {
	t.Helper()
	return runFleetWith(t, c, Options{LeaseDuration: 4 * time.Second}, func(way http.RoundTripper) http.RoundTripper { return noNodes{way} })
}

func TestMachineJoinsByTLSBootstrap(t *testing.T) {
	t.Parallel()
	for name, render := range map[string]func(guest, *testing.T) string{"cloud-config": guest.cloudConfig, "ignition": guest.ignition} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := "join-" + name
			a := runApprover(t, node)
			c := newCloud()
			log, _ := runJoining(t, c)
			g := newGuest(t, node)
			g.args += " --node-labels=team=a"
			g.taints = "[{key: startup, effect: NoSchedule}]"
			c.set(node, running, render(g, t))
			joined := waitForNode(t, node, corev1.ConditionTrue, true)
			if joined.Labels["team"] != "a" || len(joined.Spec.Taints) == 0 {
				t.Errorf("labels %v, taints %v: want the user data's", joined.Labels, joined.Spec.Taints)
			}
			eventually(t, "the serving certificate", func() error { return log.says("has a serving certificate", node) })
			checkRequests(t, a, node, g)
			if strings.Contains(log.buf.String(), g.token[7:]) {
				t.Error("the log tells the token")
			}
		})
	}
}

// checkRequests holds what was requested against what a real kubelet requests.
func checkRequests(t *testing.T, a *approver, node string, g guest) {
	t.Helper()
	client, serving := a.of(certificatesv1.KubeAPIServerClientKubeletSignerName, node), a.of(certificatesv1.KubeletServingSignerName, node)
	if len(client) != 1 || len(serving) != 1 {
		t.Fatalf("%d requests of a client certificate, %d of a serving one; want one each", len(client), len(serving))
	}
	if got, want := client[0].Spec.Username, "system:bootstrap:"+g.token[:6]; got != want {
		t.Errorf("the client certificate was requested by %s, want %s", got, want)
	}
	if !slices.Contains(client[0].Spec.Groups, bootstrapGroup) {
		t.Errorf("groups %v", client[0].Spec.Groups)
	}
	if r := parseRequest(client[0]); len(r.DNSNames)+len(r.IPAddresses) > 0 {
		t.Errorf("a client certificate with names: %v %v", r.DNSNames, r.IPAddresses)
	}
	if got := serving[0].Spec.Username; got != nodeUserPrefix+node {
		t.Errorf("the serving certificate was requested by %s", got)
	}
	r := parseRequest(serving[0])
	if diff := cmp.Diff([]string{node}, r.DNSNames); diff != "" || len(r.IPAddresses) != 1 || r.IPAddresses[0].String() != "192.0.2.1" {
		t.Errorf("a serving certificate for %v and %v", r.DNSNames, r.IPAddresses)
	}
	want := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	if diff := cmp.Diff(want, serving[0].Spec.Usages); diff != "" {
		t.Errorf("usages, -want +got:\n%s", diff)
	}
}

func TestMachineThatCannotJoinIsNoNode(t *testing.T) {
	t.Parallel()
	a := runApprover(t, "refuse-", "refuse-denied")
	c := newCloud()
	log, _ := runJoining(t, c)
	cases := []struct {
		name   string
		change func(*guest)
		want   string
	}{
		{"refuse-ca", func(g *guest) { g.ca = foreignCA(t) }, "certificate signed by unknown authority"},
		{"refuse-token", func(g *guest) { g.token = g.token[:7] + "0123456789abcdef" }, "Unauthorized"},
		{"refuse-expired", func(g *guest) { g.token = newToken(t, -time.Hour) }, "Unauthorized"},
		{"refuse-denied", func(*guest) {}, "the test denies it"},
		{"refuse-server", func(g *guest) { g.server = "https://127.0.0.1:1" }, "connection refused"},
		{"refuse-label", func(g *guest) { g.args += " --node-labels=node-restriction.kubernetes.io/a=b" }, "node-restriction.kubernetes.io"},
		{"refuse-noca", func(g *guest) { g.ca = "no certificate" }, "certificate"},
		{"refuse-config", func(g *guest) { g.taints = "[]\nnonsense: true" }, "nonsense"},
		{"refuse-name", func(g *guest) { g.args = "--hostname-override=other-node" }, ""},
	}
	for _, tc := range cases {
		g := newGuest(t, tc.name)
		tc.change(&g)
		c.set(tc.name, running, g.cloudConfig(t))
	}
	c.set("refuse-nofile", running, userData("--hostname-override=refuse-nofile"))
	c.set("refuse-not", running, newGuest(t, "refuse-not").cloudConfig(t))
	waitForNode(t, "refuse-not", corev1.ConditionTrue, true)
	for _, tc := range cases[:len(cases)-1] {
		eventually(t, tc.name, func() error { return log.says(tc.name, tc.want) })
	}
	eventually(t, "a VM without a bootstrap kubeconfig", func() error { return log.says("refuses to start", "vm=refuse-nofile", "config.yaml") })
	eventually(t, "another request of a kubelet that was denied", func() error {
		denied := a.of(certificatesv1.KubeAPIServerClientKubeletSignerName, "refuse-denied")
		if len(denied) < 3 {
			return fmt.Errorf("there are %d", len(denied))
		}
		return nil
	})
	keys := map[string]bool{}
	for _, r := range a.of(certificatesv1.KubeAPIServerClientKubeletSignerName, "refuse-denied") {
		keys[string(parseRequest(r).RawSubjectPublicKeyInfo)] = true
		if !strings.HasPrefix(r.Name, "csr-") {
			t.Errorf("the request is called %s", r.Name)
		}
	}
	if len(keys) < 3 {
		t.Error("a kubelet that was denied requests another certificate with the same key")
	}
	for _, tc := range cases {
		if err := notFound(t, tc.name); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := notFound(t, "other-node"); err != nil {
		t.Errorf("a request that nobody approved: %v", err)
	}
}

// foreignCA returns a certificate authority that did not sign the API server's certificate.
func foreignCA(t *testing.T) string {
	t.Helper()
	ca, err := localcluster.ServingCertificate(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	return string(ca)
}

// TestRebootedMachineKeepsItsCertificate has the token go, as it does when the Node is there: a
// machine needs it once.
func TestRebootedMachineKeepsItsCertificate(t *testing.T) {
	t.Parallel()
	a := runApprover(t, "reboot")
	c := newCloud()
	log, stop := runJoining(t, c)
	g := newGuest(t, "reboot")
	c.set("reboot", running, g.cloudConfig(t))
	first := waitForNode(t, "reboot", corev1.ConditionTrue, true)
	eventually(t, "the serving certificate", func() error { return log.says("has a serving certificate", "reboot") })
	if err := admin(t).CoreV1().Secrets(metav1.NamespaceSystem).Delete(t.Context(), "bootstrap-token-"+g.token[:6], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	c.set("reboot", stopped, "")
	waitForNode(t, "reboot", corev1.ConditionFalse, false)
	c.set("reboot", running, "")
	if again := waitForNode(t, "reboot", corev1.ConditionTrue, true); again.UID != first.UID {
		t.Error("the VM came back as another Node")
	}
	c.set("reboot", stopped, "")
	waitForNode(t, "reboot", corev1.ConditionFalse, false)
	deleteNode(t, "reboot")
	c.set("reboot", running, "")
	if again := waitForNode(t, "reboot", corev1.ConditionTrue, true); again.UID == first.UID {
		t.Error("the Node was not registered anew")
	}
	if n := len(a.of(certificatesv1.KubeAPIServerClientKubeletSignerName, "reboot")); n != 1 {
		t.Errorf("%d client certificates were requested, want 1", n)
	}
	stop()
	c.set("reboot", stopped, "")
	runJoining(t, c)
	waitForNode(t, "reboot", corev1.ConditionFalse, false)
	c.set("reboot", running, "")
	waitForNode(t, "reboot", corev1.ConditionTrue, true)
}

func TestFleetJoins(t *testing.T) {
	t.Parallel()
	const size = 50
	runApprover(t, "crowd-")
	c := newCloud()
	runJoining(t, c)
	began := time.Now()
	for i := range size {
		name := fmt.Sprintf("crowd-%d", i)
		c.set(name, running, newGuest(t, name).cloudConfig(t))
	}
	for i := range size {
		waitForNode(t, fmt.Sprintf("crowd-%d", i), corev1.ConditionTrue, true)
	}
	t.Logf("%d machines joined in %s", size, time.Since(began).Round(time.Millisecond))
}

// TestStoppedMachineWaitsNoLonger stops a VM whose request nobody decides.
func TestStoppedMachineWaitsNoLonger(t *testing.T) {
	t.Parallel()
	c := newCloud()
	log, _ := runJoining(t, c)
	c.set("halt", running, newGuest(t, "halt").cloudConfig(t))
	eventually(t, "the request", func() error {
		list, err := admin(t).CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if parseRequest(&list.Items[i]).Subject.CommonName == nodeUserPrefix+"halt" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	c.set("halt", gone, "")
	runApprover(t, "halt")
	c.set("halt-not", running, newGuest(t, "halt-not").cloudConfig(t))
	waitForNode(t, "halt-not", corev1.ConditionTrue, true)
	if err := notFound(t, "halt"); err != nil {
		t.Error(err)
	}
	if err := log.says("failed", "halt"); err == nil {
		t.Error("a VM that is gone counts as failed")
	}
}

// TestMachineLeavesItsNodeToTheCloud has the Node look as before its cloud controller manager.
func TestMachineLeavesItsNodeToTheCloud(t *testing.T) {
	t.Parallel()
	runApprover(t, "late-cloud")
	c := newCloud()
	runJoining(t, c)
	g := newGuest(t, "late-cloud")
	g.args += " --cloud-provider=external"
	c.set("late-cloud", running, g.cloudConfig(t))
	node := waitForNode(t, "late-cloud", corev1.ConditionTrue, true)
	t.Cleanup(func() {
		err := admin(t).CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), node.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == uninitializedTaint })
	if node.Spec.ProviderID != "" || node.Labels[corev1.LabelTopologyZone] != "" || !tainted {
		t.Errorf("provider id %q, labels %v, taints %v", node.Spec.ProviderID, node.Labels, node.Spec.Taints)
	}
}
