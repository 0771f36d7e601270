package requeue

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestEachObjectBacksOffByItself(t *testing.T) {
	limiter := RateLimiter()
	one := reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}
	another := reconcile.Request{NamespacedName: types.NamespacedName{Name: "another"}}
	longest := time.Duration(0)
	for range 100 {
		longest = max(longest, limiter.When(one))
	}
	if longest != 10*time.Second {
		t.Errorf("after 100 failures the delay is %s, want 10s", longest)
	}
	if first := limiter.When(another); first != 20*time.Millisecond {
		t.Errorf("an object that has not failed waits %s", first)
	}
}
