//go:build linux

package realvm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/core/bootstrap"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster"
)

// The kubelets besides the image's: one that `make test-qemu` builds, and one that is not what its
// digest says.
const (
	oldKubelet     = "1.35.4"
	alteredKubelet = "1.35.2"
)

// offer is a mirror of artifacts on the bridge, and what else Clusters of tests name.
type offer struct {
	mirror, digests string
	otherCA         string
}

// serveArtifacts offers the old kubelet to VMs until the test ends. Its digest is right, that of
// the altered one wrong; a third is named and missing.
func serveArtifacts(t *testing.T) offer {
	t.Helper()
	file := filepath.Join(binDir, "kubelet-1.35", "kubelet")
	kubelet, err := os.Open(file)
	if err != nil {
		t.Fatalf("%v: `make test-qemu` builds it", err)
	}
	defer kubelet.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, kubelet); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(bridge.Gateway, "0"))
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	for _, version := range []string{oldKubelet, alteredKubelet} {
		routes.HandleFunc("/dl.k8s.io/v"+version+"/bin/linux/amd64/kubelet", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	}
	server := &http.Server{Handler: routes}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	authority, err := localcluster.ServingCertificate(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	return offer{mirror: "http://" + listener.Addr().String(), digests: digests(hex.EncodeToString(sum.Sum(nil))), otherCA: string(authority)}
}

// digests lists all artifacts, as plain http needs. Only the old kubelet's digest is true: the
// image brings all others.
func digests(kubelet string) string {
	var lines strings.Builder
	for _, version := range []string{oldKubelet, alteredKubelet, "1.35.3", newKubelet} {
		for _, a := range bootstrap.Artifacts(clusterv1alpha1.OperatingSystemUbuntu, version) {
			sum := strings.Repeat("0", 2*sha256.Size)
			if a.Name == "kubelet" && version == oldKubelet {
				sum = kubelet
			}
			fmt.Fprintf(&lines, "    %s  %s\n", sum, a.Location)
		}
	}
	return lines.String()
}

// cluster is the manifest of a Cluster whose machines take artifacts from the mirror. An endpoint
// in YAML replaces the one that is discovered. What is appended to the manifest belongs to
// spec.bootstrap. The manager is let read ConfigMaps, as docs/templates.md says.
func (o offer) cluster(name, endpoint string) string {
	spec := ""
	if endpoint != "" {
		spec = "  apiEndpoints: [" + endpoint + "]\n"
	}
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: millwright-credentials, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: millwright-credentials}
subjects: [{kind: ServiceAccount, name: millwright-manager, namespace: millwright-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: digests, namespace: default}
data:
  sha256sums: |
%s---
apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata: {name: %s, namespace: default}
spec:
%s  bootstrap:
    artifacts: {mirror: %s, digestsConfigMap: {name: digests}}
`, o.digests, name, spec, o.mirror)
}
