package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// team is a namespace whose users bring a cluster, a class and credentials of their own.
type team struct {
	users *users
	// environment is where the cloud's own clients find the team's credentials.
	environment map[string]string
}

// act does what a step of the team's users says.
func (t *team) act(ctx context.Context, s plan.Step) error {
	switch s.Do {
	case plan.ApplyTeam:
		return t.apply(ctx, s.Number)
	case plan.DeleteNamespace:
		return t.users.remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plan.Team}})
	case plan.DeleteManifest:
		return t.deleteManifest(ctx)
	case plan.DeleteSecret:
		return t.lose(ctx, t.secret(), s)
	case plan.DeleteBinding:
		return t.lose(ctx, teamBinding(), s)
	}
	return nil
}

// objects are all that the team has, in the order in which it is made; its deployment is last.
func (t *team) objects(replicas int) []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plan.Team}},
		t.secret(), teamBinding(), t.cluster(), t.class(), t.deployment(replicas),
	}
}

func teamMeta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: plan.Team, Name: plan.Team} }

func (t *team) brings() clouds.Team { return t.users.options.Cloud.Team(t.environment) }

func (t *team) secret() client.Object {
	return &corev1.Secret{ObjectMeta: teamMeta(), StringData: t.brings().Secret}
}

func teamBinding() client.Object {
	return &rbacv1.RoleBinding{
		ObjectMeta: teamMeta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: credentialsRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: stack.ManagerUser}},
	}
}

func (t *team) cluster() client.Object {
	c := &clusterv1alpha1.Cluster{ObjectMeta: teamMeta()}
	c.Spec.CredentialsSecretRef = &clusterv1alpha1.SecretReference{Name: plan.Team}
	c.Spec.ProviderSpec = &clusterv1alpha1.ClusterProviderSpec{Value: clusterv1alpha1.ClusterProviderSpecValue{
		CloudProvider: t.users.options.Cloud.Name(), CloudProviderSpec: runtime.RawExtension{Raw: []byte(t.brings().Common)},
	}}
	return c
}

func (t *team) class() client.Object {
	return &clusterv1alpha1.MachineClass{
		ObjectMeta: teamMeta(), Provider: t.users.options.Cloud.Name(), ProviderSpec: runtime.RawExtension{Raw: []byte(t.brings().Spec)},
	}
}

func (t *team) deployment(replicas int) client.Object {
	d := &clusterv1alpha1.MachineDeployment{}
	giveShape(d, t.users.options.Cloud, plan.Team, plan.Shape{Replicas: replicas, Surge: 1})
	d.Namespace = plan.Team
	spec := &d.Spec.Template.Spec
	spec.Versions.Kubelet = t.brings().Kubelet
	spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: plan.Team}
	spec.ProviderSpec.ValueFrom = &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: plan.Team}}
	spec.ProviderSpec.Value.CloudProvider, spec.ProviderSpec.Value.CloudProviderSpec = "", runtime.RawExtension{}
	return d
}

// apply makes what is missing of the team, and gives it a size. What is being deleted it leaves
// alone.
func (t *team) apply(ctx context.Context, replicas int) error {
	for _, o := range t.objects(replicas) {
		err := t.users.ensure(ctx, o)
		if errors.Is(err, errLeaving) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return t.users.patchDeployment(ctx, client.ObjectKey{Namespace: plan.Team, Name: plan.Team}, map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// deleteManifest deletes what is in the team's namespace: what its machines are deleted with goes
// before they do.
func (t *team) deleteManifest(ctx context.Context) error {
	var errs []error
	for _, o := range t.objects(0)[1:] {
		errs = append(errs, t.users.remove(ctx, o))
	}
	return errors.Join(errs...)
}

// lose deletes an object of the team, and makes it anew after a while.
func (t *team) lose(ctx context.Context, o client.Object, s plan.Step) error {
	if err := errors.Join(t.users.remove(ctx, o), wait(ctx, s.Lasts)); err != nil {
		return err
	}
	return t.mend(ctx)
}

// mend makes what the team's machines need and have lost, where there are any to come.
func (t *team) mend(ctx context.Context) error {
	there := false
	err := t.users.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{}
		err := t.users.client.Get(ctx, client.ObjectKey{Namespace: plan.Team, Name: plan.Team}, d)
		there = err == nil && d.DeletionTimestamp.IsZero()
		return client.IgnoreNotFound(err)
	})
	if err != nil || !there {
		return err
	}
	objects := t.objects(0)
	for _, o := range objects[:len(objects)-1] {
		if err := t.users.ensure(ctx, o); err != nil && !errors.Is(err, errLeaving) {
			return err
		}
	}
	return nil
}
