package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Keys of a Secret that hold user data. A Secret that spec.bootstrap.dataSecretName names has
// either; of a MachineClass's Secret only UserDataKey counts.
const (
	DataSecretKey = "value"
	UserDataKey   = "userData"
)

// Placeholders in a user's own user data, for what is each machine's own.
const (
	TokenPlaceholder = "<<BOOTSTRAP_TOKEN>>" //nolint:gosec // it stands for a token, and is none
	NamePlaceholder  = "<<MACHINE_NAME>>"
)

// UserData is user data of a user's own. It is a secret. nil stands for none: the machine's is
// rendered.
type UserData struct {
	value []byte
}

// ReadUserData takes user data from a Secret, by the first of the keys that it has; nil where it
// has none of them. The error says which key is empty.
func ReadUserData(secret map[string][]byte, keys ...string) (*UserData, error) {
	for _, key := range keys {
		value, has := secret[key]
		if has && len(bytes.TrimSpace(value)) == 0 {
			return nil, fmt.Errorf("key %q is empty", key)
		}
		if has {
			return &UserData{value: value}, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// Bytes are the user data as the Secret has it. They must not be logged.
func (u *UserData) Bytes() []byte { return u.value }

// NeedsToken says whether a machine with the user data joins by a bootstrap token. That which is
// rendered always has one.
func (u *UserData) NeedsToken() bool {
	if u == nil {
		return true
	}
	for _, form := range formsOf(TokenPlaceholder) {
		if bytes.Contains(u.value, []byte(form)) {
			return true
		}
	}
	return false
}

// Render returns the user data with the machine's name and token in their places, or an error that
// says that it is too long for limit; see Config.MaxBytes. It is pure.
func (u *UserData) Render(m *clusterv1alpha1.Machine, limit int, token string) ([]byte, error) {
	var pairs []string
	for placeholder, value := range map[string]string{TokenPlaceholder: token, NamePlaceholder: m.Name} {
		for _, form := range formsOf(placeholder) {
			pairs = append(pairs, form, value)
		}
	}
	data := []byte(strings.NewReplacer(pairs...).Replace(string(u.value)))
	limit = boundOf(limit)
	if len(data) <= limit {
		return data, nil
	}
	short := data
	if system := m.Spec.ProviderSpec.Value.OperatingSystem; mayShorten(data, system) {
		var err error
		if short, err = shorten(data, system); err != nil {
			return nil, err
		}
	}
	if len(short) > limit {
		return nil, fmt.Errorf("the user data of the Secret has %d bytes, compressed where that is possible, and at most %d are possible", len(short), limit)
	}
	return short, nil
}

// formsOf are the ways in which a placeholder stands in user data: as it is, and URL-encoded as in
// the data URLs of Ignition. A token and a machine's name read the same in both.
func formsOf(placeholder string) []string {
	encoded := url.QueryEscape(placeholder)
	return []string{placeholder, encoded, strings.NewReplacer("%3C", "%3c", "%3E", "%3e").Replace(encoded)}
}

// mayShorten says whether the machine reads the user data also when it is compressed. cloud-init
// does; Ignition has to be told, which takes a configuration of its own form.
func mayShorten(data []byte, system clusterv1alpha1.OperatingSystem) bool {
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return false // it is gzip already
	}
	var config ignition
	return system != clusterv1alpha1.OperatingSystemFlatcar || json.Unmarshal(data, &config) == nil && config.Ignition.Version != ""
}
