package manager

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/controllers/fleet/fleettest"
)

func TestMain(m *testing.M) { os.Exit(fleettest.Run(m)) }

// Metrics are for those whom the API server knows and whom RBAC lets read them.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	config := fleettest.Config()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mayRead(t, c, "reader")
	reader, stranger := tokenOf(t, c, "reader"), tokenOf(t, c, "stranger")
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := onlyReaders(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) })
	handler, err := filter(logr.Discard(), page)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"who may":                            {http.MethodGet, "/metrics", "Bearer " + reader, http.StatusOK},
		"who may, as others write it":        {http.MethodGet, "/metrics", "bearer " + reader, http.StatusOK},
		"who may, but not that URL":          {http.MethodGet, "/debug", "Bearer " + reader, http.StatusForbidden},
		"who may, but not that verb":         {http.MethodPost, "/metrics", "Bearer " + reader, http.StatusForbidden},
		"who is known, and may not":          {http.MethodGet, "/metrics", "Bearer " + stranger, http.StatusForbidden},
		"who is not known":                   {http.MethodGet, "/metrics", "Bearer " + reader + "x", http.StatusUnauthorized},
		"nobody":                             {http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		"nobody, who says so":                {http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized},
		"a password, even if it is a token":  {http.MethodGet, "/metrics", "Basic " + reader, http.StatusUnauthorized},
		"a token without a word before it":   {http.MethodGet, "/metrics", reader, http.StatusUnauthorized},
		"a client certificate's empty token": {http.MethodGet, "/metrics", "Bearer", http.StatusUnauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, time := range []string{"first", "second"} {
				request := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, http.NoBody)
				if tc.authorization != "" {
					request.Header.Set("Authorization", tc.authorization)
				}
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, request)
				if answer.Code != tc.want || (answer.Body.String() == "metrics") != (tc.want == http.StatusOK) {
					t.Errorf("the %s time the answer is %d %q, want %d", time, answer.Code, answer.Body, tc.want)
				}
			}
		})
	}
}

func TestVerdictsHoldForAWhile(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	d := &doorkeeper{clock: clock, verdicts: map[[sha256.Size]byte]verdict{}}
	key := sha256.Sum256([]byte("one"))
	d.remember(key, http.StatusOK)
	clock.SetTime(clock.Now().Add(verdictKept - time.Second))
	if status, known := d.remembered(key); !known || status != http.StatusOK {
		t.Errorf("a verdict is forgotten too soon: %d, %v", status, known)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if _, known := d.remembered(key); known {
		t.Error("a right that may have been taken away holds on")
	}
	for i := range 2 * maxVerdicts {
		d.remember(sha256.Sum256([]byte{byte(i), byte(i >> 8)}), http.StatusUnauthorized)
	}
	if len(d.verdicts) > maxVerdicts {
		t.Errorf("%d verdicts are kept: who guesses tokens fills the memory", len(d.verdicts))
	}
}

// mayRead lets a ServiceAccount of that name read metrics.
func mayRead(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func tokenOf(t *testing.T, c kubernetes.Interface, name string) string {
	t.Helper()
	accounts := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	answer, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}
