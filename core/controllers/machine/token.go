package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/bootstrap/token"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",namespace=kube-system,resources=secrets,verbs=get;create;patch;delete

// errTokenTaken is why a machine gets no bootstrap token: the Secret of its id is somebody else's.
var errTokenTaken = errors.New("the id of the bootstrap token is taken")

// tokenClient reads and writes bootstrap tokens in the cluster of the Nodes. Reads are live: no
// Secret is cached.
type tokenClient struct {
	writer client.Client
	live   client.Reader
}

// forCreate returns the token for a machine that is about to be created. One that is there is used
// again: a VM whose create had no answer has it. Where there is none, one is minted if the step
// says so and one is needed. Where the step does not say so, ready is false, and the scope says
// that the token is gone. An error that people have to mend is shown in the Machine, and taken over
// by the scope; then ready is false, too.
func (c tokenClient) forCreate(ctx context.Context, s *machineScope, step lifecycle.Step, needed bool) (value string, ready bool, err error) {
	owner := s.tokenOwner()
	var t *token.Token
	// Before the first create there is none, unless this process has made it.
	if s.state.Machine.Status.LastOperation != nil || s.state.Token.Known && !s.state.Token.NotNeeded {
		t, err = c.readRenewed(ctx, s)
	}
	if err == nil && t == nil {
		if !step.NewToken {
			s.takeToken(nil)
			return "", false, nil
		}
		if !needed {
			s.takeToken(nil)
			s.state.Token.NotNeeded, s.memory.token.NotNeeded = true, true
			return "", true, nil
		}
		t, err = c.create(ctx, owner, s.tokenExpiry())
		if apierrors.IsAlreadyExists(err) {
			t, err = c.readRenewed(ctx, s)
		}
	}
	if errors.Is(err, errTokenTaken) || apierrors.IsForbidden(err) {
		s.state.BootstrapError = err.Error()
		return "", false, nil
	}
	if err != nil || t == nil {
		// The Secret came and went meanwhile: it is looked at again.
		return "", false, err
	}
	s.takeToken(t)
	return t.Value(), true, nil
}

// apply renews or deletes the machine's token, as a step says.
func (c tokenClient) apply(ctx context.Context, s *machineScope, do lifecycle.Action) error {
	if do == lifecycle.DeleteToken {
		return c.delete(ctx, s)
	}
	return c.renew(ctx, s)
}

// renew reads the machine's token, and extends it if it is about to expire. A Secret that is none
// of this machine's lets nobody join. After any error it is not known whether there is a token: an
// API server that has just started says Forbidden to everybody.
func (c tokenClient) renew(ctx context.Context, s *machineScope) error {
	t, err := c.readRenewed(ctx, s)
	if errors.Is(err, errTokenTaken) {
		t, err = nil, nil
	}
	if err == nil {
		s.takeToken(t)
	}
	return err
}

// readRenewed reads the machine's token and extends it if it is about to expire; nil where there
// is none.
func (c tokenClient) readRenewed(ctx context.Context, s *machineScope) (*token.Token, error) {
	secret, err := c.get(ctx, s.tokenOwner())
	if secret == nil || err != nil {
		return nil, err
	}
	t, err := token.Read(secret)
	if err != nil {
		return nil, fmt.Errorf("%w: Secret %s: %w", errTokenTaken, client.ObjectKeyFromObject(secret), err)
	}
	if s.state.Now.Before(t.RenewAt()) {
		return &t, nil
	}
	t.ExpiresAt = s.tokenExpiry()
	patch := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	token.SetExpiration(secret, t.ExpiresAt)
	if err := c.writer.Patch(ctx, secret, patch); err != nil {
		return nil, fmt.Errorf("extend the bootstrap token: %w", err)
	}
	return &t, nil
}

// delete deletes the machine's token, where there is one.
func (c tokenClient) delete(ctx context.Context, s *machineScope) error {
	secret, err := c.get(ctx, s.tokenOwner())
	if err != nil && !errors.Is(err, errTokenTaken) {
		return err
	}
	if secret != nil {
		err := c.writer.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the bootstrap token: %w", err)
		}
	}
	s.takeToken(nil)
	return nil
}

// create makes a token.
func (c tokenClient) create(ctx context.Context, owner token.Owner, expires time.Time) (*token.Token, error) {
	generated, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return nil, fmt.Errorf("generate a bootstrap token: %w", err)
	}
	// The id follows from the machine: of what is generated only the secret part is used.
	_, part, _ := strings.Cut(generated, ".")
	secret := token.NewSecret(owner, part, expires)
	if err := c.writer.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("create the bootstrap token: %w", err)
	}
	t, err := token.Read(secret)
	return &t, err
}

// get returns the Secret of a machine's token; nil where there is none.
func (c tokenClient) get(ctx context.Context, owner token.Owner) (*corev1.Secret, error) {
	key, secret := token.Key(token.ID(owner.UID)), &corev1.Secret{}
	if err := c.live.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // there is none, and that is no error
		}
		return nil, fmt.Errorf("read the bootstrap token: %w", err)
	}
	switch other := token.OwnerOf(secret); {
	case other == token.Owner{}:
		return nil, fmt.Errorf("%w by Secret %s, which is no machine's", errTokenTaken, key)
	case other != owner:
		return nil, fmt.Errorf("%w by Secret %s of Machine %s with machineUID %s: this machine waits until it is gone",
			errTokenTaken, key, other.Machine, other.UID)
	}
	return secret, nil
}

// tokenOwner is what the machine's token has to say of whose it is.
func (s *machineScope) tokenOwner() token.Owner {
	return token.Owner{UID: s.state.Machine.UID, Machine: s.key()}
}

// tokenExpiry is when a token expires that is minted or extended now.
func (s *machineScope) tokenExpiry() time.Time {
	return s.state.Now.Add(token.Lifetime(s.state.Machine.StartupTimeout))
}

// takeToken takes over which token the machine has now; nil for none.
func (s *machineScope) takeToken(t *token.Token) {
	known := lifecycle.Token{Known: true, ReadAt: s.state.Now, Recheck: 2 * s.secretRecheck}
	if t != nil {
		known.RenewAt = t.RenewAt()
	}
	s.state.Token, s.memory.token = known, known
}
