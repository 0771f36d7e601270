package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// credentialsRole is the shipped ClusterRole that lets the manager read a namespace's Secrets.
const credentialsRole = "millwright-credentials"

// openAccount returns the flags with which the cloud knows the team's account, where it has one of
// its own.
func openAccount(o Options) ([]string, error) {
	if o.Cloud.Name() != stack.Fake().Name() {
		return nil, nil
	}
	file, err := filepath.Abs(filepath.Join(o.Dir, "team.key"))
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	if err := os.WriteFile(file, []byte(clouds.TeamKey), 0o600); err != nil {
		return nil, fmt.Errorf("write the key of the team's account: %w", err)
	}
	return []string{"--account=" + clouds.TeamAccount + "=" + file}, nil
}

// useTeam does what the team's users do.
func (a *arena) useTeam(ctx context.Context, s plan.Step) error {
	switch s.Do {
	case plan.ApplyTeam:
		return a.applyTeam(ctx, s.Number)
	case plan.DeleteNamespace:
		return a.remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plan.Team}})
	case plan.DeleteManifest:
		return a.deleteManifest(ctx)
	case plan.DeleteSecret:
		return a.lose(ctx, a.teamSecret(), s)
	case plan.DeleteBinding:
		return a.lose(ctx, teamBinding(), s)
	}
	return nil
}

// teamObjects are all that the team has, in the order in which it is made; its deployment is last.
func (a *arena) teamObjects(replicas int) []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plan.Team}},
		a.teamSecret(), teamBinding(), a.teamCluster(), a.teamClass(), a.teamDeployment(replicas),
	}
}

func teamMeta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: plan.Team, Name: plan.Team} }

func (a *arena) team() clouds.Team { return a.options.Cloud.Team(a.stack.CloudEnvironment()) }

func (a *arena) teamSecret() client.Object {
	return &corev1.Secret{ObjectMeta: teamMeta(), StringData: a.team().Secret}
}

func teamBinding() client.Object {
	return &rbacv1.RoleBinding{
		ObjectMeta: teamMeta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: credentialsRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: stack.ManagerUser}},
	}
}

func (a *arena) teamCluster() client.Object {
	c := &clusterv1alpha1.Cluster{ObjectMeta: teamMeta()}
	c.Spec.CredentialsSecretRef = &clusterv1alpha1.SecretReference{Name: plan.Team}
	c.Spec.ProviderSpec = &clusterv1alpha1.ClusterProviderSpec{Value: clusterv1alpha1.ClusterProviderSpecValue{
		CloudProvider: a.options.Cloud.Name(), CloudProviderSpec: runtime.RawExtension{Raw: []byte(a.team().Common)},
	}}
	return c
}

func (a *arena) teamClass() client.Object {
	return &clusterv1alpha1.MachineClass{
		ObjectMeta: teamMeta(), Provider: a.options.Cloud.Name(), ProviderSpec: runtime.RawExtension{Raw: []byte(a.team().Spec)},
	}
}

func (a *arena) teamDeployment(replicas int) client.Object {
	d := &clusterv1alpha1.MachineDeployment{}
	a.give(d, plan.Team, plan.Shape{Replicas: replicas, Surge: 1})
	d.Namespace = plan.Team
	spec := &d.Spec.Template.Spec
	spec.Versions.Kubelet = a.team().Kubelet
	spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: plan.Team}
	spec.ProviderSpec.ValueFrom = &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: plan.Team}}
	spec.ProviderSpec.Value.CloudProvider, spec.ProviderSpec.Value.CloudProviderSpec = "", runtime.RawExtension{}
	return d
}

// errLeaving says that an object is being deleted: nobody can have it back before it is gone.
var errLeaving = errors.New("it is being deleted")

// applyTeam makes what is missing of the team, and gives it a size. What is being deleted it leaves
// alone.
func (a *arena) applyTeam(ctx context.Context, replicas int) error {
	for _, o := range a.teamObjects(replicas) {
		err := a.ensure(ctx, o)
		if errors.Is(err, errLeaving) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return a.patchTeam(ctx, replicas)
}

// ensure makes an object that is not there. The error is errLeaving when it is being deleted, or
// its namespace is.
func (a *arena) ensure(ctx context.Context, wanted client.Object) error {
	leaving := false
	err := a.insist(ctx, func(ctx context.Context) error {
		there, _ := wanted.DeepCopyObject().(client.Object)
		err := a.client.Get(ctx, client.ObjectKeyFromObject(wanted), there)
		if err == nil {
			leaving = !there.GetDeletionTimestamp().IsZero()
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		made, _ := wanted.DeepCopyObject().(client.Object)
		err = a.client.Create(ctx, made)
		if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			leaving = true
			return nil
		}
		return err
	})
	if err == nil && leaving {
		return errLeaving
	}
	return err
}

func (a *arena) patchTeam(ctx context.Context, replicas int) error {
	return a.patchDeployment(ctx, client.ObjectKey{Namespace: plan.Team, Name: plan.Team}, map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// deleteManifest deletes what is in the team's namespace: what its machines are deleted with goes
// before they do.
func (a *arena) deleteManifest(ctx context.Context) error {
	var errs []error
	for _, o := range a.teamObjects(0)[1:] {
		errs = append(errs, a.remove(ctx, o))
	}
	return errors.Join(errs...)
}

// lose deletes an object of the team, and makes it anew after a while.
func (a *arena) lose(ctx context.Context, o client.Object, s plan.Step) error {
	if err := errors.Join(a.remove(ctx, o), wait(ctx, s.Lasts)); err != nil {
		return err
	}
	return a.mendTeam(ctx)
}

// mendTeam makes what the team's machines need and have lost, where there are any to come.
func (a *arena) mendTeam(ctx context.Context) error {
	there := false
	err := a.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{}
		err := a.client.Get(ctx, client.ObjectKey{Namespace: plan.Team, Name: plan.Team}, d)
		there = err == nil && d.DeletionTimestamp.IsZero()
		return client.IgnoreNotFound(err)
	})
	if err != nil || !there {
		return err
	}
	objects := a.teamObjects(0)
	for _, o := range objects[:len(objects)-1] {
		if err := a.ensure(ctx, o); err != nil && !errors.Is(err, errLeaving) {
			return err
		}
	}
	return nil
}
