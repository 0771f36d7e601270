package identity

import (
	"encoding/json"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// written is a token or a credential as the journal has it.
func written(one any) json.RawMessage {
	raw, _ := json.Marshal(one) // of texts and times alone, this never fails
	return raw
}

// Snapshot adds all tokens and application credentials to an entry of the journal.
func (keystone *Keystone) Snapshot(e *state.Entry) {
	for _, one := range keystone.Tokens {
		e.Tokens = append(e.Tokens, written(one))
	}
	for _, one := range keystone.credentials {
		e.Credentials = append(e.Credentials, written(one))
	}
}

// Restore takes in what an entry of the journal says of tokens and application credentials. Those
// of users whom the world no longer has are dropped.
func (keystone *Keystone) Restore(e *state.Entry) error {
	for _, raw := range e.Tokens {
		one := &Token{}
		if err := json.Unmarshal(raw, one); err != nil {
			return err
		}
		if one.User = keystone.Users[one.UserID]; one.User != nil {
			keystone.Tokens[one.ID] = one
		}
	}
	for _, raw := range e.Credentials {
		one := &credential{}
		if err := json.Unmarshal(raw, one); err != nil {
			return err
		}
		if keystone.Users[one.UserID] != nil {
			keystone.credentials[one.ID] = one
		}
	}
	for _, id := range e.Revoked {
		delete(keystone.Tokens, id)
		delete(keystone.credentials, id)
	}
	return nil
}
