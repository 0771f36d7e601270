package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
)

// ownUserData is what the machine, or its class, brings; nil for none.
func (m *manifests) ownUserData(ctx context.Context) (*bootstrap.UserData, error) {
	namespace := m.machine.Namespace
	if own := m.machine.Spec.Bootstrap; own != nil {
		found, err := m.userDataOf(ctx, namespace, own.DataSecretName, bootstrap.DataSecretKey, bootstrap.UserDataKey)
		if err == nil && found == nil {
			err = fmt.Errorf("user data of Secret %s: it has neither key %q nor key %q", own.DataSecretName, bootstrap.DataSecretKey, bootstrap.UserDataKey)
		}
		return found, err
	}
	from := m.machine.Spec.ProviderSpec.ValueFrom
	if from == nil {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	class := &clusterv1alpha1.MachineClass{}
	if err := m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: from.MachineClass.Name}, class); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for _, ref := range []*clusterv1alpha1.SecretReference{class.CredentialsSecretRef, class.SecretRef} {
		if ref == nil {
			continue
		}
		found, err := m.userDataOf(ctx, cmp.Or(ref.Namespace, namespace), ref.Name, bootstrap.UserDataKey)
		if client.IgnoreNotFound(err) != nil || found != nil {
			return found, err
		}
	}
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// userDataOf reads user data from a Secret; nil where that has none of the keys.
func (m *manifests) userDataOf(ctx context.Context, namespace, name string, keys ...string) (*bootstrap.UserData, error) {
	secret := &corev1.Secret{}
	if err := m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, err
	}
	data := maps.Clone(secret.Data)
	for key, value := range secret.StringData {
		if data == nil {
			data = map[string][]byte{}
		}
		data[key] = []byte(value)
	}
	own, err := bootstrap.ReadUserData(data, keys...)
	if err != nil {
		return nil, fmt.Errorf("user data of Secret %s: %w", name, err)
	}
	return own, nil
}
