package drain

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// answering is a Drainer whose API server answers every eviction with s and asks to come back in
// ten seconds.
func answering(t *testing.T, s metav1.Status) (d *Drainer, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return drainerOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "10")
		write(w, int(s.Code), s)
	}), asked
}

// write answers with an object.
func write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// drainerOf is a Drainer of an API server that answers as told.
func drainerOf(t *testing.T, answer http.HandlerFunc) *Drainer {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	workload, err := cluster.New(&rest.Config{Host: server.URL}, func(o *cluster.Options) {
		o.Scheme = scheme
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
			mapper.Add(storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), meta.RESTScopeRoot)
			return mapper, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(workload)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEvict: what the API server answers, at the first time that it is asked.
func TestEvict(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) metav1.Status {
		return metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
			Details: &metav1.StatusDetails{RetryAfterSeconds: 10, Causes: causes},
		}
	}
	for name, c := range map[string]struct {
		answer  metav1.Status
		outcome outcome
		why     string // what blocks it
	}{
		"granted":                 {answer: metav1.Status{Status: metav1.StatusSuccess, Code: 201}, outcome: evicted},
		"the pod is gone":         {answer: status(404, metav1.StatusReasonNotFound, "no pod"), outcome: gone},
		"another pod of its name": {answer: status(409, metav1.StatusReasonConflict, "uid differs"), outcome: gone},
		"a budget whose status lags": {
			answer: status(429, metav1.StatusReasonTooManyRequests, "Cannot evict pod", metav1.StatusCause{
				Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web is still being processed by the server.",
			}),
			outcome: blocked, why: "The disruption budget web is still being processed by the server.",
		},
		"several budgets": {
			answer:  metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "This pod has more than one PodDisruptionBudget"},
			outcome: blocked, why: "This pod has more than one PodDisruptionBudget",
		},
		"a busy API server": {
			answer: status(429, metav1.StatusReasonTooManyRequests, "come back later"), outcome: refused, why: "come back later",
		},
		"a broken webhook": {
			answer: status(500, metav1.StatusReasonInternalError, "failed calling webhook"), outcome: refused, why: "failed calling webhook",
		},
		"a namespace that is terminating": {
			answer: status(403, metav1.StatusReasonForbidden, "unable to create new content in namespace a because it is being terminated",
				metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}),
			outcome: refused, why: "unable to create new content in namespace a because it is being terminated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, asked := answering(t, c.answer)
			got, why, err := d.evict(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "c"}})
			if got != c.outcome || why != c.why {
				t.Errorf("outcome %d, %q; want %d, %q", got, why, c.outcome, c.why)
			}
			if err != nil {
				t.Errorf("error %v", err)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}
