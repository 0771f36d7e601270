//go:build linux

package realvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// What keeps a VM from becoming a Node is told by a condition of its Machine, in the words of
// whoever noticed in the VM.
func TestQEMUAConditionTellsWhyAVMDoesNotJoin(t *testing.T) {
	tier.Long(t, "it takes real VMs")
	shared.showTrouble(t)
	offer := serveArtifacts(t)
	faults := map[string]struct {
		bootstrap string // of the Machine's Cluster
		endpoint  string
		kubelet   string
		meddle    func(*testing.T, string)
		want      string
	}{
		"other-ca":         {bootstrap: indent(offer.otherCA), kubelet: newKubelet, want: `certificate signed by unknown authority|unable to get local issuer certificate`},
		"no-api-server":    {endpoint: "{host: 10.77.0.1, port: 1}", kubelet: newKubelet, want: `connection refused|Failed to connect|Could not connect`},
		"wrong-token":      {kubelet: newKubelet, meddle: changeToken, want: `Unauthorized`},
		"no-token":         {kubelet: newKubelet, meddle: removeToken, want: `Unauthorized|[Tt]oken (is gone|is missing|was deleted)`},
		"missing-artifact": {kubelet: "1.35.3", want: `error: 404`},
		"altered-artifact": {kubelet: alteredKubelet, want: `kubelet: the file has SHA-256 [0-9a-f]{64}, not 0{64}`},
		"full-disk":        {bootstrap: fullDisk, kubelet: newKubelet, want: `the disk of /\S* is full|no space left on device`},
	}
	t.Run("faults", func(t *testing.T) {
		for name, fault := range faults {
			t.Run(name, func(t *testing.T) {
				// Not in parallel: Clusters have objects in common.
				shared.mustKubectl(t, offer.cluster(name, fault.endpoint)+fault.bootstrap, "apply", "-f", "-")
				t.Parallel()
				// Several boot at once: with a CPU each they are faster than with two.
				small := strings.ReplaceAll(machine(name, fault.kubelet), "cpus: 2", "cpus: 1")
				shared.mustKubectl(t, small, "apply", "-f", "-")
				defer shared.mustKubectl(t, "", "delete", "machine", name, "--wait=false")
				if fault.meddle != nil {
					fault.meddle(t, name)
				}
				shared.awaitCause(t, name, regexp.MustCompile(fault.want))
			})
		}
	})
	shared.awaitGone(t)
}

// awaitCause returns once the Machine's condition Ready says what is wanted. As soon as the console
// does, in what the VM tells regularly, the time for the Node is over: a busy host takes long.
func (f *fixture) awaitCause(t *testing.T, name string, want *regexp.Regexp) {
	t.Helper()
	told := regexp.MustCompile(`(?s)no certificate yet.*(` + want.String() + `)`)
	eventually(t, "a condition that names the cause", func(ctx context.Context) error {
		m := &clusterv1alpha1.Machine{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, m); err != nil {
			return err
		}
		for _, c := range m.Status.Conditions {
			if c.Type == clusterv1alpha1.ConditionReady && want.MatchString(c.Message) {
				t.Log(c.Message)
				return nil
			}
		}
		if m.Spec.NodeStartupTimeout.Duration == overdue || !told.MatchString(f.console(m)) {
			return fmt.Errorf("%s", describe(m))
		}
		patch := client.MergeFrom(m.DeepCopy())
		m.Spec.NodeStartupTimeout.Duration = overdue
		return errors.Join(errors.New("the console tells"), f.client.Patch(ctx, m, patch))
	})
}

// overdue is a start-up timeout that each VM has exceeded that tells of its trouble.
const overdue = time.Second

// console is what a VM has written to its console; empty where there is none.
func (f *fixture) console(m *clusterv1alpha1.Machine) string {
	if m.Spec.MachineUID == nil {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(f.consoles, *m.Spec.MachineUID, "console.log"))
	return string(text)
}

// fullDisk fills the disk up to the last block before the machine is prepared.
const fullDisk = `
    files:
    - path: /etc/systemd/system/millwright-bootstrap.service.d/fill.conf
      content: |
        [Service]
        ExecStartPre=-/bin/sh -c 'for size in 8G 4G 2G 1G 512M 256M 128M 64M 32M 16M 8M 4M 2M 1M; do fallocate --length $size /fill-$size; done'
        ExecStartPre=-/usr/bin/dd if=/dev/zero of=/fill-rest bs=1M oflag=append conv=notrunc
`

// removeToken takes a machine's token away.
func removeToken(t *testing.T, name string) {
	t.Helper()
	meddleWithToken(t, name, func(ctx context.Context, secret *corev1.Secret) error {
		return shared.client.Delete(ctx, secret)
	})
}

// changeToken gives a machine's token another secret part than the VM has.
func changeToken(t *testing.T, name string) {
	t.Helper()
	meddleWithToken(t, name, func(ctx context.Context, secret *corev1.Secret) error {
		secret.Data["token-secret"] = []byte("0123456789abcdef")
		return shared.client.Update(ctx, secret)
	})
}

// meddleWithToken calls meddle with the Secret of a machine's token as soon as the machine has its
// VM: no other token goes into its user data.
func meddleWithToken(t *testing.T, name string, meddle func(context.Context, *corev1.Secret) error) {
	t.Helper()
	eventually(t, "the VM and its token to be there", func(ctx context.Context) error {
		m := &clusterv1alpha1.Machine{}
		if err := shared.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, m); err != nil {
			return err
		}
		if m.Spec.ProviderID == nil {
			return errors.New("there is no VM")
		}
		tokens, err := shared.bootstrapSecrets(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(tokens, func(s corev1.Secret) bool { return s.Annotations["cluster.k8s.io/machine"] == "default/"+name })
		if at < 0 {
			return fmt.Errorf("there is no token among %d", len(tokens))
		}
		return meddle(ctx, &tokens[at])
	})
}

// indent writes a PEM as the caBundle of a Cluster.
func indent(pem string) string {
	return "    caBundle: |\n      " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n      ") + "\n"
}
