package discovery

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pages is an API server whose ConfigMaps are all of one size; of size zero there is none.
type pages struct {
	client.Reader
	size, reads int
}

func (p *pages) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	p.reads++
	if p.size == 0 {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	o.(*corev1.ConfigMap).Data = map[string]string{"key": strings.Repeat("x", p.size)}
	return nil
}

func TestWhatIsKeptOfConfigMapsIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ size, kept int }{
		"large ones":   {512 << 10, 7},
		"small ones":   {512, maxKept / (512 + bytesOfAKey)},
		"missing ones": {0, maxKept / bytesOfAKey},
	} {
		t.Run(name, func(t *testing.T) {
			clock, reader := testingclock.NewFakePassiveClock(time.Now()), &pages{size: c.size}
			all := &configMaps[string]{live: reader, clock: clock, parse: func(name dataKey, data map[string]string) (string, error) { return data[name.key], nil }}
			read := func(i int) (isNew bool) {
				before := reader.reads
				clock.SetTime(clock.Now().Add(time.Microsecond))
				got, err := all.read(t.Context(), dataKey{types.NamespacedName{Name: strconv.Itoa(i)}, "key"}, "it")
				if len(got) != c.size || (err == nil) != (c.size > 0) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				return reader.reads > before
			}
			for i := range c.kept + 2 {
				read(i)
			}
			if len(all.known) > c.kept || len(all.known) < c.kept-1 {
				t.Errorf("%d are kept, want %d", len(all.known), c.kept)
			}
			if read(c.kept+1) || !read(0) {
				t.Error("it is not the oldest that is forgotten")
			}
			clock.SetTime(clock.Now().Add(keptUnasked - time.Second))
			read(0)
			clock.SetTime(clock.Now().Add(kept))
			if read(0); len(all.known) != 1 {
				t.Errorf("%d are kept, but one is asked for", len(all.known))
			}
		})
	}
}
