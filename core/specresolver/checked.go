package specresolver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// Checked is a spec for which the operator's rules have passed. Check alone makes one. Only its
// methods read Secrets: Secrets, UserData, Keep and Renew. The zero value reads none.
type Checked struct {
	resolver  *Resolver
	effective Effective
	schema    *providerspec.Schema
	spec      providerspec.Spec
	json      []byte
}

// Check holds a spec to the operator's rules, with what comes from ConfigMaps filled in. The
// argument known is the schema of its driver as it is connected now. It reads no Secret. A field
// may come from a Secret only where the schema says writeOnly.
//
// A spec that the rules refuse is an *instance.Failure of class SpecInvalid, which names the
// fields. One that refers to what is not there is of class Precondition. Other errors are the API
// server's, and pass. The Checked that comes with an error knows the spec, and no secrets.
func (r *Resolver) Check(ctx context.Context, e Effective, known *providerspec.Schema) (Checked, error) {
	unchecked := Checked{json: e.Spec}
	read, wrong := providerspec.Read(e.Spec)
	if wrong != nil {
		return unchecked, refusal(wrong)
	}
	unchecked.spec = read
	values := map[string]string{}
	for _, ref := range read.References {
		if ref.Kind != providerspec.ConfigMap {
			continue
		}
		value, _, err := r.reader.value(ctx, e, ref)
		if err != nil {
			return unchecked, at(ref.Path, err)
		}
		values[ref.Path.String()] = string(value)
	}
	read = read.Fill(values)
	unchecked.spec, unchecked.json = read, read.JSON()
	if wrong := r.rules.inspect(e, read, known); wrong != nil {
		return unchecked, refusal(wrong)
	}
	return Checked{
		resolver: r, effective: e, schema: known, spec: read, json: unchecked.json,
	}, nil
}

// Secretless returns a spec that has no use for secrets or ConfigMaps, as most have none. It
// returns false where that cannot be said without a closer look. No rule needs to be asked
// before its driver is told of it, since nothing of anybody's goes along.
func Secretless(e Effective) (Checked, bool) {
	// A key may be written with escapes.
	if len(e.Credentials) > 0 || bytes.Contains(e.Spec, []byte("KeyRef")) || bytes.Contains(e.Spec, []byte(`"value"`)) ||
		bytes.Contains(e.Spec, []byte(`\u`)) {
		return Checked{}, false
	}
	return Checked{json: e.Spec}, true
}

// Spec is the spec with what comes from ConfigMaps. What comes from Secrets is referred to.
func (c Checked) Spec() providerspec.Spec { return c.spec }

// JSON is what the driver is told of the spec. Fields that come from Secrets are cut out; what
// Secrets returns goes beside it, in ProviderContext.secrets.
func (c Checked) JSON() []byte { return c.json }

// Complete checks the spec that a driver has made of this one by its defaults. The secrets of this
// one may go with it only after that. The failure is one of Check's.
func (c Checked) Complete(completed []byte) *instance.Failure {
	if c.resolver == nil {
		return nil
	}
	read, wrong := providerspec.Read(completed)
	if wrong == nil {
		read.References = c.spec.References
		wrong = c.resolver.rules.inspect(c.effective, read, c.schema)
	}
	return refusal(wrong)
}

// Secrets reads the secrets that go with the spec: by key of an inherited Secret, or by the path
// of a field. They must not be logged. missing says why some come from a copy: no VM may be made
// with those. Errors are those of Check.
func (c Checked) Secrets(ctx context.Context) (secrets map[string][]byte, missing, err error) {
	if c.resolver == nil {
		return nil, nil, nil
	}
	secrets = map[string][]byte{}
	for _, ref := range c.effective.Credentials {
		all, err := c.resolver.reader.secret(ctx, c.effective, ref)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(secrets, all.data)
		if all.missing != nil {
			missing = cmp.Or[error](missing, all.missing)
		}
	}
	for _, ref := range c.spec.References {
		value, gone, err := c.resolver.reader.value(ctx, c.effective, ref)
		if err != nil {
			return nil, nil, at(ref.Path, err)
		}
		secrets[ref.Path.String()] = value
		missing = cmp.Or(missing, gone)
	}
	return secrets, missing, nil
}

// Passed says whether the rules have passed: without that, no secret is read.
func (c Checked) Passed() bool { return c.resolver != nil }

// UserData reads the user data that the machine brings itself: that of the Secret of its own
// namespace which its spec.bootstrap.dataSecretName names, else that of its class's Secrets. It is
// nil where there is none, and must not be logged. Errors are those of Check. They say nothing of
// what is in a Secret.
func (c Checked) UserData(ctx context.Context, dataSecretName string) (*bootstrap.UserData, error) {
	if c.resolver == nil {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if dataSecretName != "" {
		return c.namedUserData(ctx, dataSecretName)
	}
	// As with credentials, the later one wins.
	for _, ref := range slices.Backward(c.effective.OfClass) {
		secret, err := c.resolver.reader.secret(ctx, c.effective, ref)
		if err != nil {
			return nil, err
		}
		own, err := bootstrap.ReadUserData(secret.data, bootstrap.UserDataKey)
		if err != nil {
			return nil, unresolved(fmt.Sprintf("Secret %s/%s: %s", within(c.effective.Namespace, ref.Namespace), ref.Name, err))
		}
		if own != nil {
			return own, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// namedUserData reads the user data of the Secret that a Machine names. There are no copies of it:
// no VM is made with one.
func (c Checked) namedUserData(ctx context.Context, name string) (*bootstrap.UserData, error) {
	e := c.effective
	e.MayExist = false
	secret, err := c.resolver.reader.secret(ctx, e, clusterv1alpha1.SecretReference{Name: name})
	if err != nil {
		return nil, err
	}
	own, err := bootstrap.ReadUserData(secret.data, bootstrap.DataSecretKey, bootstrap.UserDataKey)
	if err == nil && own == nil {
		err = fmt.Errorf("it has neither key %q nor key %q", bootstrap.DataSecretKey, bootstrap.UserDataKey)
	}
	if err != nil {
		return nil, unresolved(fmt.Sprintf("Secret %s/%s: %s", e.Namespace, name, err))
	}
	return own, nil
}

// Keep has copies kept of the Secrets that the spec refers to, so that a VM which is made with them
// can be deleted without. Call it before the VM is created. Errors are those of Check; the copies
// of all other Secrets are kept nevertheless.
func (c Checked) Keep(ctx context.Context) error { return c.keep(ctx, true) }

// Renew is Keep for machines that have their VMs: the copies may be removed once these are gone.
func (c Checked) Renew(ctx context.Context) error { return c.keep(ctx, false) }

func (c Checked) keep(ctx context.Context, create bool) error {
	if c.resolver == nil || c.resolver.copies == nil {
		return nil
	}
	e := c.effective
	e.MayExist = false
	var failed error
	for _, secret := range e.secrets(c.spec) {
		found, err := c.resolver.reader.read(ctx, e, object{providerspec.Secret, secret})
		var source Source
		if err == nil {
			source, err = c.resolver.copies.source(ctx, e.Namespace, secret)
		}
		if err == nil {
			err = c.resolver.copies.keep(ctx, source, found.data, create)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// at says in which field of the spec the trouble lies.
func at(path providerspec.Path, err error) error {
	failure, is := errors.AsType[*instance.Failure](err)
	if !is {
		return err
	}
	located := *failure
	located.Fields = []instance.Field{{Path: path.Shown(), Description: failure.Message}}
	return &located
}
