package userdata

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/test/tier"
)

// artifacts are what a mirror has, by path.
type artifacts map[string][]byte

func (a artifacts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, found := a[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data)
}

// script answers as a program does that is asked for its version.
func script(version string) []byte { return []byte("#!/bin/sh\necho '" + version + "'\n") }

// archive is a tar.gz of programs.
func archive(t *testing.T, programs map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for name, content := range programs {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// installation is a machine's root folder, in which millwright-bootstrap installs artifacts.
type installation struct {
	root, program string
}

// newInstallation has the lines of the list of artifacts, each "NAME VERSION KIND DIRECTORY URL
// SUMS DIGEST".
func newInstallation(t *testing.T, lines ...string) installation {
	t.Helper()
	root := t.TempDir()
	program := boot(t, clusterv1alpha1.OperatingSystemUbuntu, everything(t, clusterv1alpha1.OperatingSystemUbuntu)).files["/opt/bin/millwright-bootstrap"].content
	program, _, found := strings.Cut(program, "\nif [ \"${1:-}\" = report ]")
	if !found {
		t.Fatal("the script ends otherwise: this test cannot run a part of it")
	}
	moved := program
	for _, folder := range []string{"/opt/", "/etc/millwright", "/var/lib/millwright", "/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/lib/cni"} {
		moved = strings.ReplaceAll(moved, folder, root+folder)
	}
	// The tools of this host, behind those of the root.
	moved = strings.Replace(moved, ":/bin", ":/bin:$PATH", 1) + "\ninstall_artifacts\n"
	list := ""
	for _, line := range lines {
		list += runtime.GOARCH + " " + line + "\n"
	}
	write(t, filepath.Join(root, "etc/millwright/artifacts"), list, 0o644)
	write(t, filepath.Join(root, "etc/millwright/kubelet-version"), "1.36.3\n", 0o644)
	return installation{root: root, program: moved}
}

func (i installation) run(t *testing.T) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-c", i.program).CombinedOutput()
	return string(out), err
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

func TestLIFE2_ArtifactsAreVerifiedBeforeTheyAreInstalled(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	kubelet := script("Kubernetes v1.36.3")
	containerd := archive(t, map[string][]byte{
		"bin/containerd": script("containerd example.com/containerd v2.3.7 abc"), "bin/containerd-shim-runc-v2": script(""), "bin/ctr": script(""),
	})
	cni := archive(t, map[string][]byte{"./loopback": script(""), "./host-local": script(""), "./portmap": script("")})
	mirror := artifacts{"/kubelet": kubelet, "/containerd.tgz": containerd, "/cni.tgz": cni}
	server := httptest.NewServer(mirror)
	defer server.Close()
	line := func(root, name, version, kind, directory, file, digest string) string {
		return fmt.Sprintf("%s %s %s %s %s/%s %s/%s.sha256 %s", name, version, kind, root+directory, server.URL, file, server.URL, file, digest)
	}
	i := newInstallation(t)
	lists := func(kubeletDigest string) {
		var list strings.Builder
		for _, l := range []string{
			line(i.root, "kubelet", "1.36.3", "file", "/opt/bin", "kubelet", kubeletDigest),
			line(i.root, "containerd", "2.3.7", "tar", "/usr/local", "containerd.tgz", sum(containerd)),
			line(i.root, "cni", "1.9.1", "tar", "/opt/cni/bin", "cni.tgz", sum(cni)),
		} {
			list.WriteString(runtime.GOARCH + " " + l + "\n")
		}
		write(t, filepath.Join(i.root, "etc/millwright/artifacts"), list.String(), 0o644)
	}

	lists(strings.Repeat("0", 64))
	out, err := i.run(t)
	if err == nil || !strings.Contains(out, "kubelet: the file has SHA-256 "+sum(kubelet)) {
		t.Errorf("another kubelet than was pinned: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(i.root, "opt/bin/kubelet")); err == nil {
		t.Error("a kubelet with a wrong digest is installed")
	}
	lists(sum(kubelet))
	if out, err = i.run(t); err != nil || strings.Contains(out, "containerd: downloading") {
		t.Fatalf("after the digest is right, what is there is fetched again, or not all is installed: %v\n%s", err, out)
	}
	for _, program := range []string{"opt/bin/kubelet", "usr/local/bin/containerd", "usr/local/bin/containerd-shim-runc-v2", "opt/cni/bin/portmap"} {
		if info, err := os.Stat(filepath.Join(i.root, program)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", program, info, err)
		}
	}
	server.Close()
	if out, err = i.run(t); err != nil {
		t.Errorf("a reboot without a network: %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(i.root, "var/lib/millwright/*")); len(left) > 0 {
		t.Errorf("left behind are %v", left)
	}
}

func TestLIFE2_AGoldenImageNeedsNoNetwork(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	const nowhere = "http://127.0.0.1:9/x http://127.0.0.1:9/x.sha256 -"
	i := newInstallation(t, "kubelet 1.36.3 file /opt/bin "+nowhere, "containerd 2.3.7 tar /usr/local "+nowhere,
		"cni 1.9.1 tar /opt/cni/bin "+nowhere, "crictl 1.34.0 tar /opt/bin "+nowhere)
	for name, content := range map[string][]byte{
		"usr/bin/kubelet": script("Kubernetes v1.36.3"), "usr/bin/containerd": script("containerd x 2.1.0 y"), "usr/bin/containerd-shim-runc-v2": script(""),
		"usr/lib/cni/loopback": script(""), "usr/lib/cni/host-local": script(""), "usr/lib/cni/portmap": script(""),
	} {
		write(t, filepath.Join(i.root, name), string(content), 0o755)
	}
	out, err := i.run(t)
	if err != nil || strings.Contains(out, "downloading") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, program := range []string{"opt/bin/kubelet", "usr/local/bin/containerd", "opt/cni/bin/portmap"} {
		if _, err := os.Stat(filepath.Join(i.root, program)); err != nil {
			t.Error(err)
		}
	}
	write(t, filepath.Join(i.root, "usr/bin/containerd"), string(script("containerd x 1.7.28 y")), 0o755)
	if out, err = i.run(t); err == nil || !strings.Contains(out, "containerd: downloading") {
		t.Errorf("containerd 1.7 is taken: %v\n%s", err, out)
	}
}

// redirector answers with what a mirror has, and sends all else to another server.
type redirector struct {
	mirror artifacts
	to     string
}

func (r redirector) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if _, found := r.mirror[request.URL.Path]; found {
		r.mirror.ServeHTTP(w, request)
		return
	}
	http.Redirect(w, request, r.to+request.URL.Path, http.StatusFound)
}

func TestLIFE2_NoRedirectLeavesHTTPS(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	kubelet := script("Kubernetes v1.36.3")
	sums := artifacts{"/kubelet.sha256": []byte(sum(kubelet))}
	mirror := artifacts{"/kubelet": kubelet, "/kubelet.sha256": sums["/kubelet.sha256"]}
	plain := httptest.NewServer(mirror)
	defer plain.Close()
	encrypted := httptest.NewTLSServer(mirror)
	defer encrypted.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encrypted.Certificate().Raw})), 0o644)
	t.Setenv("CURL_CA_BUNDLE", authority)
	t.Setenv("SSL_CERT_FILE", authority)

	for _, c := range []struct {
		name, to  string
		begin     func(http.Handler) *httptest.Server
		mirror    artifacts
		digest    string
		installed bool
	}{
		{"https to https, as GitHub does", encrypted.URL, httptest.NewTLSServer, nil, "-", true},
		{"https to http", plain.URL, httptest.NewTLSServer, nil, "-", false},
		{"https to http, the sum itself by https", plain.URL, httptest.NewTLSServer, sums, "-", false},
		{"https to http, pinned", plain.URL, httptest.NewTLSServer, nil, sum(kubelet), false},
		{"http to https, pinned", encrypted.URL, httptest.NewServer, nil, sum(kubelet), true},
		{"http to http, pinned", plain.URL, httptest.NewServer, nil, sum(kubelet), true},
	} {
		server := c.begin(redirector{mirror: c.mirror, to: c.to})
		defer server.Close()
		for tool, asked := range map[string]string{"curl": "command -v curl", "python3": "command -v no-curl"} {
			t.Run(c.name+", by "+tool, func(t *testing.T) {
				i := newInstallation(t)
				i.program = strings.ReplaceAll(i.program, "command -v curl", asked)
				write(t, filepath.Join(i.root, "etc/millwright/artifacts"), fmt.Sprintln(runtime.GOARCH, "kubelet", "1.36.3", "file", i.root+"/opt/bin",
					server.URL+"/kubelet", server.URL+"/kubelet.sha256", c.digest), 0o644)
				out, err := i.run(t)
				refused := strings.Contains(out, "redirected to http:") || strings.Contains(out, `Protocol "http" `)
				if installed := err == nil; installed != c.installed || refused == installed {
					t.Errorf("the kubelet is installed: %t\n%s", installed, out)
				}
			})
		}
	}
}

// millwright is the command. make build builds it.
const millwright = "../../bin/kubectl-millwright"

// What `kubectl millwright artifacts` prints and downloads, of one architecture, is served by plain
// http.
func TestLIFE2_AMirrorByPlainHTTPSetsUpAMachine(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	server := httptest.NewTLSServer(everyArtifact(t))
	defer server.Close()
	folder, authority := t.TempDir(), filepath.Join(t.TempDir(), "ca.pem")
	write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), 0o644)
	command := exec.CommandContext(t.Context(), millwright, "artifacts", "--kubelet=1.36.3", "--operating-system=ubuntu",
		"--architecture="+runtime.GOARCH, "--from="+server.URL, "--download="+folder)
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+authority)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	var printed corev1.ConfigMap
	decode(t, out.String(), &printed)

	mirror := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer mirror.Close()
	s := allOptions(clusterv1alpha1.OperatingSystemUbuntu)
	s.config.ArtifactMirror, s.config.Digests = mirror.URL, bootstrap.ReadDigests(printed.Data[bootstrap.DigestsKey])
	list := boot(t, clusterv1alpha1.OperatingSystemUbuntu, render(t, s)).files["/etc/millwright/artifacts"].content
	i := newInstallation(t)
	for _, directory := range []string{"/opt/bin", "/opt/cni/bin", "/usr/local/sbin", "/usr/local"} {
		list = strings.ReplaceAll(list, " "+directory+" ", " "+i.root+directory+" ")
	}
	write(t, filepath.Join(i.root, "etc/millwright/artifacts"), list, 0o644)
	if output, err := i.run(t); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	for _, program := range []string{"opt/bin/kubelet", "usr/local/bin/containerd", "usr/local/sbin/runc", "opt/cni/bin/portmap"} {
		if _, err := os.Stat(filepath.Join(i.root, program)); err != nil {
			t.Error(err)
		}
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	i.program = strings.Replace(i.program, "machine=$(uname -m)", "machine="+other, 1)
	if err := os.Remove(filepath.Join(i.root, "opt/bin/kubelet")); err != nil {
		t.Fatal(err)
	}
	if output, err := i.run(t); err == nil || !strings.Contains(output, "kubelet: the image must bring version 1.36.3") {
		t.Errorf("the mirror lacks the other architecture: %v\n%s", err, output)
	}
}

// everyArtifact are those of a machine with Ubuntu, and their sums.
func everyArtifact(t *testing.T) artifacts {
	t.Helper()
	contents := map[string][]byte{
		"kubelet": script("Kubernetes v1.36.3"), "runc": script("runc"), "crictl": archive(t, map[string][]byte{"crictl": script("")}),
		"containerd": archive(t, map[string][]byte{"bin/containerd": script("containerd x v2.3.7 y"), "bin/containerd-shim-runc-v2": script("")}),
		"cni":        archive(t, map[string][]byte{"./loopback": script(""), "./host-local": script(""), "./portmap": script("")}),
	}
	all := artifacts{}
	for _, a := range bootstrap.Artifacts(clusterv1alpha1.OperatingSystemUbuntu, "1.36.3") {
		all["/"+a.Location] = contents[a.Name]
		all["/"+a.Sums] = fmt.Appendf(all["/"+a.Sums], "%s  %s\n", sum(contents[a.Name]), filepath.Base(a.Location))
	}
	return all
}

// cloud-init writes the time servers after those who ask them have begun.
func TestLIFE2_OwnTimeServersAreAskedAtTheFirstBoot(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	i := newInstallation(t)
	servers := "/etc/systemd/timesyncd.conf.d/millwright.conf"
	i.program = strings.ReplaceAll(strings.TrimSuffix(i.program, "install_artifacts\n"), servers, i.root+servers) +
		"systemctl() { echo \"systemctl $*\"; }\nset_clock 2>/dev/null\n"
	if out, err := i.run(t); err != nil || out != "" {
		t.Errorf("without time servers: %v\n%s", err, out)
	}
	write(t, filepath.Join(i.root, servers), "[Time]\nNTP=ntp.example.com\n", 0o644)
	want := "systemctl try-restart systemd-timesyncd.service\nsystemctl try-restart chrony.service\n"
	if out, err := i.run(t); err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
}
