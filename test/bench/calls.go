package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// calls are how many calls there were so far.
type calls struct {
	// driver counts core's calls to the driver about machines, cloud the driver's to the cloud.
	driver, cloud int
}

func (r *run) calls(ctx context.Context) (calls, error) {
	driver, err := r.metrics.driverCalls(ctx)
	if err != nil {
		return calls{}, err
	}
	totals, err := r.stack.Backend().GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		return calls{}, fmt.Errorf("ask the cloud for its totals: %w", err)
	}
	cloud := 0
	for _, n := range totals.GetCalls() {
		cloud += int(n)
	}
	return calls{driver: driver, cloud: cloud}, nil
}

// scraper reads the manager's metrics, as who may.
type scraper struct {
	client *http.Client
	url    string
	token  string
}

// reader is the account that reads metrics.
const reader = "bench"

func newScraper(ctx context.Context, s *stack.Stack, address string) (*scraper, error) {
	c, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: reader}}
	if _, err := c.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create the account that reads metrics: %w", err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
	}
	if _, err := c.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create its role: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: reader}},
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("give it the role: %w", err)
	}
	path := filepath.Join(filepath.Dir(s.ManagerKubeconfig()), "metrics.kubeconfig")
	if err := s.KubeconfigForServiceAccount(ctx, metav1.NamespaceSystem, reader, path); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read its kubeconfig: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // the manager signs its certificate itself; it is on this machine
	}}
	return &scraper{client: &http.Client{Transport: transport}, url: "https://" + address + "/metrics", token: config.BearerToken}, nil
}

// driverCalls counts the calls to the driver so far, of all methods that are about machines.
func (s *scraper) driverCalls(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read the manager's metrics: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read the manager's metrics: %s", answer.Status)
	}
	return sumCalls(answer.Body)
}

// sumCalls sums the counts of millwright_driver_call_duration_seconds, but for calls that are not about machines.
func sumCalls(metrics io.Reader) (int, error) {
	total := 0
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), "millwright_driver_call_duration_seconds_count{")
		if !ok || !strings.Contains(labels, "Machine") {
			continue
		}
		n, err := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("read the manager's metrics: %w", err)
		}
		total += int(n)
	}
	return total, lines.Err()
}
