package arena

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// A machine with too much to do hinders everybody: a tick that comes late shows it.
const (
	tickInterval = 100 * time.Millisecond
	lateTick     = 400 * time.Millisecond
)

// feelPulse notes when this machine stands still, until ctx ends.
func feelPulse(ctx context.Context, r *record) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for last := time.Now(); ; last = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := time.Now(); now.Sub(last) > lateTick {
			r.note(judge.Act{At: last, Until: now, Do: judge.Hindered, Target: "the machine"})
		}
	}
}

// askAPIServer notes when the API server of that name takes long to answer, though nobody hinders
// it, until ctx ends: whoever depends on it is as late.
func askAPIServer(ctx context.Context, name string, c client.Client, r *record) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		// What it answers is of no interest, nor that it does not.
		_ = c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
		if ended := time.Now(); ended.Sub(began) > lateTick {
			r.note(judge.Act{At: began, Until: ended, Do: judge.Hindered, Target: name})
		}
	}
}
