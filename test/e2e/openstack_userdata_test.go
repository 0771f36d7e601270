package e2e

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// maxUserData is how many characters of base64 Nova takes.
// https://docs.openstack.org/api-ref/compute/#create-server
const maxUserData = 65535

// checkUserData holds what Nova has for the Machine's server to Nova's limit. Without -short it
// holds it to cloud-init's own schema, too. test/userdata looks into each file of it.
func (u *openStackUser) checkUserData(m *clusterv1alpha1.Machine) {
	u.t.Helper()
	data := u.vm(*m.Spec.ProviderID).GetUserData()
	if n := base64.StdEncoding.EncodedLen(len(data)); n > maxUserData {
		u.t.Errorf("machine %s: its user data has %d characters in base64, want %d at most", m.Name, n, maxUserData)
	}
	if !bytes.Contains(data, []byte(m.Name)) {
		u.t.Errorf("machine %s: its user data does not name it", m.Name)
	}
	if testing.Short() {
		return
	}
	file := filepath.Join(u.t.TempDir(), "user-data")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		u.t.Fatal(err)
	}
	if out, err := exec.CommandContext(u.t.Context(), "cloud-init", "schema", "--config-file", file).CombinedOutput(); err != nil {
		u.t.Errorf("machine %s: cloud-init refuses its user data (Debian's package cloud-init): %v\n%s", m.Name, err, out)
	}
}
