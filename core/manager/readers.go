package manager

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// verdictKept is how long a verdict on a reader holds, and maxVerdicts how many there are at most: who scrapes comes
	// every few seconds, and always with the same token.
	verdictKept = time.Minute
	maxVerdicts = 1000
	// verdictTimeout bounds the questions to the API server.
	verdictTimeout = 10 * time.Second
)

// onlyReaders lets those read whose bearer token the API server knows, and whom its authorizer lets read the URL: by
// TokenReview and SubjectAccessReview. It does what controller-runtime's filter does, which links the API server's own
// library and CEL: a sixth of the manager's memory, for two requests.
func onlyReaders(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make the client of TokenReviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make the client of SubjectAccessReviews: %w", err)
	}
	d := &doorkeeper{
		tokens: authentication.TokenReviews(), accesses: authorization.SubjectAccessReviews(), clock: clock.RealClock{},
		verdicts: map[[sha256.Size]byte]verdict{},
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, err := d.judge(r)
			if err != nil {
				// What the API server says is not for strangers.
				log.Error(err, "Could not find out whether a reader of metrics may read them")
			}
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// doorkeeper decides who may read. It is safe for concurrent use.
type doorkeeper struct {
	tokens   authenticationclient.TokenReviewInterface
	accesses authorizationclient.SubjectAccessReviewInterface
	clock    clock.PassiveClock

	mu sync.Mutex
	// verdicts are by a hash of token, method and path: no token is kept.
	verdicts map[[sha256.Size]byte]verdict
}

type verdict struct {
	status int
	until  time.Time
}

// judge returns the status of the answer: 200 for who may read.
func (d *doorkeeper) judge(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(r.Method + "\x00" + r.URL.Path + "\x00" + token))
	if status, known := d.remembered(key); known {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), verdictTimeout)
	defer cancel()
	status, err := d.ask(ctx, token, strings.ToLower(r.Method), r.URL.Path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	d.remember(key, status)
	return status, nil
}

// ask asks the API server.
func (d *doorkeeper) ask(ctx context.Context, token, verb, path string) (int, error) {
	review, err := d.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	access, err := d.accesses.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	if !access.Status.Allowed || access.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (d *doorkeeper) remembered(key [sha256.Size]byte) (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, known := d.verdicts[key]
	return v.status, known && d.clock.Now().Before(v.until)
}

func (d *doorkeeper) remember(key [sha256.Size]byte, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.verdicts) >= maxVerdicts {
		clear(d.verdicts)
	}
	d.verdicts[key] = verdict{status: status, until: d.clock.Now().Add(verdictKept)}
}
