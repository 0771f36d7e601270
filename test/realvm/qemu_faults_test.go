//go:build linux

package realvm

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// What keeps a VM from becoming a Node is told by a condition of its Machine, in the words of
// whoever noticed in the VM.
func TestQEMUAConditionTellsWhyAVMDoesNotJoin(t *testing.T) {
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
		"no-token":         {kubelet: newKubelet, meddle: removeToken, want: `Unauthorized|unauthorized|no token`},
		"missing-artifact": {kubelet: "1.35.3", want: `404|not found|Not Found`},
		"altered-artifact": {kubelet: alteredKubelet, want: `SHA-256`},
		"full-disk":        {bootstrap: fullDisk, kubelet: newKubelet, want: `[Nn]o space left|DiskPressure|disk`},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared.mustKubectl(t, offer.cluster(name, fault.endpoint)+fault.bootstrap, "apply", "-f", "-")
			shared.mustKubectl(t, machine(name, fault.kubelet), "apply", "-f", "-")
			if fault.meddle != nil {
				fault.meddle(t, name)
			}
			want := regexp.MustCompile(fault.want)
			eventually(t, "a condition that names the cause", func(ctx context.Context) error {
				m := &clusterv1alpha1.Machine{}
				if err := shared.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, m); err != nil {
					return err
				}
				for _, c := range m.Status.Conditions {
					if c.Type == clusterv1alpha1.ConditionReady && want.MatchString(c.Message) {
						return nil
					}
				}
				return fmt.Errorf("%s", describe(m))
			})
			shared.mustKubectl(t, "", "delete", "machine", name, "--wait=false")
		})
	}
}

// fullDisk fills the disk before the kubelet starts, up to the last block.
const fullDisk = `
    units:
    - name: fill.service
      enabled: true
      content: |
        [Unit]
        Before=millwright-bootstrap.service containerd.service kubelet.service
        [Service]
        Type=oneshot
        RemainAfterExit=yes
        ExecStart=-/usr/bin/dd if=/dev/zero of=/fill bs=1M
        [Install]
        WantedBy=multi-user.target
        RequiredBy=millwright-bootstrap.service
`

// removeToken takes a machine's token away as soon as it is there.
func removeToken(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the token to be there", func(ctx context.Context) error {
		tokens, err := shared.bootstrapSecrets(ctx)
		if err != nil {
			return err
		}
		for _, secret := range tokens {
			if secret.Annotations["cluster.k8s.io/machine"] == "default/"+name {
				return client.IgnoreNotFound(shared.client.Delete(ctx, &secret))
			}
		}
		return fmt.Errorf("there is none among %d", len(tokens))
	})
}

// indent writes a PEM as the caBundle of a Cluster.
func indent(pem string) string {
	return "    caBundle: |\n      " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n      ") + "\n"
}
