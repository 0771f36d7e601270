package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// The kubeconfig of the workload cluster is replaced, as people and as a Secret's volume replace
// files, and the token in the one before is revoked: the manager goes on without a restart. It also
// does so after the API server has ended all its watches.
func TestLIFE13_TwoClustersKubeconfigIsReplaced(t *testing.T) {
	tier.Long(t, "API servers remember a token for a while")
	t.Parallel()
	u := newTwoClustersUser(t)
	u.apply(deployment("rotated", 1, nil))
	u.awaitRunning(1)
	pid := u.Process(stack.Manager).Pid()
	revoke := func() {}
	// A file at first, then a link to one, then that link's folder is replaced.
	for i, replace := range []func(path string, data []byte) error{renameOver, project, project} {
		token := u.bindToken()
		before := u.replaceToken(token.value, replace)
		revoke()
		if i > 0 {
			u.awaitRefused(before)
		}
		revoke = token.revoke
		if i == 2 {
			u.kill([]string{stack.WorkloadAPIServer})
			u.revive([]string{stack.WorkloadAPIServer})
		}
		u.kubectl("scale", "machinedeployment", "rotated", fmt.Sprintf("--replicas=%d", i+2))
		u.awaitRunning(i + 2)
	}
	u.checkOneVMEach()
	u.kubectl("delete", "machinedeployment", "rotated")
	u.awaitGone()
	if now := u.Process(stack.Manager).Pid(); now != pid {
		t.Errorf("the manager was started again: process %d became %d", pid, now)
	}
}

// boundToken is a token of the manager's ServiceAccount in the workload cluster that can be
// revoked.
type boundToken struct {
	value  string
	revoke func()
}

// bindToken returns a new token, which is good as long as a Secret that it is bound to exists.
func (u *user) bindToken() boundToken {
	u.t.Helper()
	ctx := u.t.Context()
	anchor := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, GenerateName: "access-"}}
	if err := u.workload.Create(ctx, anchor); err != nil {
		u.t.Fatalf("make what the token is bound to: %v", err)
	}
	revoke := func() {
		if err := u.workload.Delete(context.WithoutCancel(ctx), anchor); client.IgnoreNotFound(err) != nil {
			u.t.Errorf("revoke a token: %v", err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: "millwright-manager"}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(24 * time.Hour / time.Second)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: anchor.Name, UID: anchor.UID},
	}}
	if err := u.workload.SubResource("token").Create(ctx, account, request); err != nil {
		u.t.Fatalf("request a token of the manager: %v", err)
	}
	return boundToken{value: request.Status.Token, revoke: revoke}
}

// replaceToken replaces the manager's kubeconfig of the workload cluster by one with another token,
// and returns what was in the file before.
func (u *user) replaceToken(token string, replace func(path string, data []byte) error) (before []byte) {
	u.t.Helper()
	path := u.WorkloadKubeconfig()
	before, err := os.ReadFile(path)
	if err != nil {
		u.t.Fatal(err)
	}
	config, err := clientcmd.Load(before)
	if err != nil {
		u.t.Fatalf("read the kubeconfig: %v", err)
	}
	for _, info := range config.AuthInfos {
		info.Token = token
	}
	after, err := clientcmd.Write(*config)
	if err != nil {
		u.t.Fatalf("write the kubeconfig: %v", err)
	}
	if err := replace(path, after); err != nil {
		u.t.Fatalf("replace the kubeconfig: %v", err)
	}
	return before
}

// renameOver writes a file beside another and gives it that one's name.
func renameOver(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// project replaces a file as the kubelet does in a Secret's volume. The file is a symbolic link
// through ..data, which is one to the folder that has the data. Only ..data is replaced.
func project(path string, data []byte) error {
	dir, name := filepath.Split(path)
	folder, err := os.MkdirTemp(dir, "..data-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		return err
	}
	if err := linkOver(filepath.Base(folder), filepath.Join(dir, "..data")); err != nil {
		return err
	}
	through := filepath.Join("..data", name)
	if target, err := os.Readlink(path); err == nil && target == through {
		return nil
	}
	return linkOver(through, path)
}

// linkOver makes a symbolic link and gives it the name of what is there.
func linkOver(target, path string) error {
	if err := os.Symlink(target, path+".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// awaitRefused waits until the API server of the workload cluster refuses what a kubeconfig has: it
// remembers for some seconds that a token was good.
func (u *user) awaitRefused(kubeconfig []byte) {
	u.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		u.t.Fatalf("read the kubeconfig: %v", err)
	}
	c, err := newClient(config)
	if err != nil {
		u.t.Fatal(err)
	}
	eventually(u.t, "the token to be revoked", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: "millwright-manager"}, &corev1.ServiceAccount{})
		if !apierrors.IsUnauthorized(err) {
			return errors.Join(errors.New("it is not"), err)
		}
		return nil
	})
}
