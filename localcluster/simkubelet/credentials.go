package simkubelet

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/util/keyutil"
)

// credentials are what a machine's disk keeps of its kubelet's across a reboot, and the life of
// what uses them, which ends with the machine's power. They are empty in the fast mode.
type credentials struct {
	mu  sync.Mutex
	all identity
	// joining says that the kubelet is about to get its first certificate.
	joining bool
	// on says that the machine has power. powered ends when it loses it; nil while nothing depends
	// on it.
	on      bool
	powered context.Context //nolint:containedctx // the life of a machine is none of a call's
	cut     context.CancelFunc
}

// identity is what a kubelet authenticates with.
type identity struct {
	// key is the certificate's, in PEM.
	key []byte
	// certificate is in PEM, and empty until it is issued.
	certificate []byte
	// serving says that the certificate for the kubelet's own API was issued.
	serving bool
}

func (c *credentials) identity() identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// setPower notes whether the machine runs. Where it does not, all that its kubelet does ends.
func (c *credentials) setPower(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = on
	if !on && c.cut != nil {
		c.cut()
		c.powered, c.cut = nil, nil
	}
}

// untilOff returns a context that ends with ctx or when the machine loses its power; false when it
// has none.
func (c *credentials) untilOff(ctx context.Context) (context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.untilOffLocked(ctx)
}

func (c *credentials) untilOffLocked(ctx context.Context) (context.Context, bool) {
	if !c.on {
		return nil, false
	}
	if c.powered == nil {
		c.powered, c.cut = context.WithCancel(ctx)
	}
	return c.powered, true
}

// beginJoin is untilOff for one join at a time; false while another is under way.
func (c *credentials) beginJoin(ctx context.Context) (context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joining {
		return nil, false
	}
	ctx, c.joining = c.untilOffLocked(ctx)
	return ctx, c.joining
}

// endJoin notes what the join came to, which is empty when the machine lost its power.
func (c *credentials) endJoin(got identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joining, c.all = false, got
}

func (c *credentials) noteServing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.serving = true
}

// parseKey reads a key as kubelets make it: ECDSA P-256, in PEM.
func parseKey(data []byte) (crypto.Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("parse key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("parse key: it cannot sign")
	}
	return signer, nil
}
