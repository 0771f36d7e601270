package identity

import (
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Options say how Keystone behaves.
type Options struct {
	// Regions are those in which the catalog has every service.
	Regions []string
	// Password is that of every user.
	Password string
	// TokenLifetime is how long a token is good.
	TokenLifetime time.Duration
	// WithoutCinder leaves block storage out of the catalog.
	WithoutCinder bool
}

// Keystone is the identity service. The lock of its store's Front guards it.
type Keystone struct {
	store   *state.Store
	options Options

	// Users and Tokens are by id.
	Users  map[string]*Account
	Tokens map[string]*Token

	credentials map[string]*credential
}

// New returns a Keystone that knows nobody.
func New(store *state.Store, o Options) *Keystone {
	return &Keystone{
		store: store, options: o, Users: map[string]*Account{}, Tokens: map[string]*Token{}, credentials: map[string]*credential{},
	}
}
