package userdata

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
)

// token has a token's form, and is nobody's.
const token = "abcdef.0123456789abcdef"

// spec is a machine and what it is set up with.
type spec struct {
	machine *clusterv1alpha1.Machine
	config  bootstrap.Config
}

// hostile are texts that some format or program would read as more than text.
var hostile = rapid.OneOf(
	rapid.String(),
	rapid.SampledFrom([]string{
		"a\nb", "a\r\nb", "x\u2028y", "x\u0085y", "\x00", "\ufeff", "\x7f", "\ufffd", "a\xffb", `"; reboot #`, "$(reboot)", "`reboot`", "${PATH}", "%n %H",
		"{{ .x }}", "{% raw %}", "---\n", "...", "!!python/object/apply:os.system [reboot]", "&a *a", "key: value", "- item", "# none", " lead", "trail ",
		"<<BOOTSTRAP_TOKEN>>", `\`, `\n`, "'", `'''`, `"""`, "]]>", "</script>", "../../etc/passwd", "data:,x", "yes", "null", "0x1f", "1e3", "~",
		"\U0001F600", "e\u0301", "\t", "=", "", "runcmd: [reboot]\n", "[Service]\nExecStart=/bin/false", "--v=9", "a b",
	}),
)

// drawer draws fields of which only a few are hostile: else nothing would be rendered.
type drawer struct {
	*rapid.T
	hostileFields []string
}

// text draws a field: one of the good values, or anything.
func (d drawer) text(field string, good ...string) string {
	if slices.Contains(d.hostileFields, field) {
		return hostile.Draw(d.T, field)
	}
	return rapid.SampledFrom(good).Draw(d.T, field)
}

// texts draws up to three.
func (d drawer) texts(field string, good ...string) []string {
	var all []string
	for range rapid.IntRange(0, 3).Draw(d.T, field+" count") {
		all = append(all, d.text(field, good...))
	}
	return all
}

// fields that may be hostile.
var fields = []string{
	"name", "kubelet", "sshKey", "label", "labelValue", "taint", "taintValue", "annotation", "server", "dns", "domain", "cidr", "pause", "proxy", "noProxy",
	"registry", "mirror", "artifactMirror", "digest", "ntp", "package", "path", "unit", "eviction",
	"address", "gateway", "nameserver", "family",
}

var specs = rapid.Custom(func(t *rapid.T) spec {
	d := drawer{T: t, hostileFields: rapid.SliceOfN(rapid.SampledFrom(fields), 0, 2).Draw(t, "hostile")}
	return spec{machine: d.machine(), config: d.config()}
})

func (d drawer) machine() *clusterv1alpha1.Machine {
	m := &clusterv1alpha1.Machine{}
	m.Name = d.text("name", "w", "worker-1", "worker-a.example.com")
	m.Labels = map[string]string{d.text("label", "app", "example.com/app", "kubernetes.io/role", "node-role.kubernetes.io/x"): d.text("labelValue", "", "web", "A_b.c")}
	m.Annotations = map[string]string{
		"v1.kubelet-config.machine-controller.kubermatic.io/ContainerLogMaxSize": d.text("annotation", "10Mi", "1Gi"),
		"v1.kubelet-config.machine-controller.kubermatic.io/EvictionHard":        "memory.available<" + d.text("eviction", "100Mi", "5%"),
	}
	m.Spec.Versions.Kubelet = d.text("kubelet", "1.36.3", "v1.35.0", "1.34.1")
	for range rapid.IntRange(0, 2).Draw(d.T, "taints") {
		m.Spec.Taints = append(m.Spec.Taints, d.taint())
	}
	value := &m.Spec.ProviderSpec.Value
	value.OperatingSystem = rapid.SampledFrom([]clusterv1alpha1.OperatingSystem{
		clusterv1alpha1.OperatingSystemUbuntu, clusterv1alpha1.OperatingSystemFlatcar,
	}).Draw(d.T, "system")
	value.OperatingSystemSpec.DistUpgradeOnBoot = rapid.Bool().Draw(d.T, "upgrade")
	value.OperatingSystemSpec.DisableAutoUpdate = rapid.Bool().Draw(d.T, "no updates")
	value.OverwriteCloudConfig = hostile.Draw(d.T, "cloud-config")
	if rapid.Bool().Draw(d.T, "fixed address") {
		value.Network.CIDR, value.Network.Gateway = d.text("address", "192.168.1.10/24"), d.text("gateway", "192.168.1.1")
	}
	value.Network.DNS.Servers = d.texts("nameserver", "192.168.1.2", "fd00::2")
	value.Network.IPFamily = clusterv1alpha1.IPFamily(d.text("family", "", "IPv4", "IPv6", "IPv4+IPv6", "IPv6+IPv4"))
	value.SSHPublicKeys = d.texts("sshKey", "ssh-ed25519 AAAA me", `ssh-rsa BBBB "it's" # [me]: {you}`)
	return m
}

func (d drawer) taint() clusterv1alpha1.Taint {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	return clusterv1alpha1.Taint{
		Key: d.text("taint", "dedicated", "example.com/gpu"), Value: d.text("taintValue", "", "yes"),
		Effect: rapid.SampledFrom(effects).Draw(d.T, "effect"),
	}
}

func (d drawer) config() bootstrap.Config {
	c := bootstrap.Config{
		Server: d.text("server", "https://api.example.com:6443", "https://10.0.2.2:6443", "https://[fd00::1]:6443"), CABundle: authority(),
		ClusterDNS: append([]string{"10.96.0.10"}, d.texts("dns", "fd00::a")...), ClusterDomain: d.text("domain", "", "cluster.local", "example.com"),
		PodCIDRs: d.texts("cidr", "10.244.0.0/16", "fd00:1::/64"), PauseImage: d.text("pause", "", "example.com:5000/pause:3.9"),
		ExternalCloudProvider: rapid.Bool().Draw(d.T, "ccm"), HTTPProxy: d.text("proxy", "", "http://user:pa%24s@proxy.example.com:3128"),
		NoProxy: d.texts("noProxy", ".example.com", "10.0.0.0/8"), NTPServers: d.texts("ntp", "ntp.example.com", "10.0.0.1"),
		ArtifactMirror: d.text("artifactMirror", "", "https://mirror.example.com/a"), HostCABundle: authority(),
		BlockMetadata: rapid.Bool().Draw(d.T, "block"),
	}
	for _, host := range d.texts("registry", "docker.io", "_default", "example.com:5000") {
		if c.RegistryMirrors == nil {
			c.RegistryMirrors = map[string][]string{}
		}
		c.RegistryMirrors[host] = d.texts("mirror", "https://a.example.com", "http://b.example.com/v2/docker")
	}
	if digest := d.text("digest", "", fmt.Sprintf("%064x", 7)); digest != "" {
		c.Digests = map[string]string{"dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet": digest}
	}
	if rapid.IntRange(0, 3).Draw(d.T, "packages") == 0 {
		c.Packages = d.texts("package", "nfs-common", "jq=1.6-2.1")
	}
	free := func(field string) string { return hostile.Draw(d.T, field) }
	kubelet, err := json.Marshal(map[string]any{"maxPods": 42, "clusterDomain": free("kubelet's domain"), "staticPodPath": free("static pods")})
	if err != nil {
		d.Fatal(err)
	}
	c.KubeletConfiguration = kubelet
	for i := range rapid.IntRange(0, 2).Draw(d.T, "files") {
		c.Files = append(c.Files, bootstrap.File{Path: d.text("path", "/etc/own", "/opt/own") + fmt.Sprint(i), Content: free("content"), Mode: 0o640})
	}
	for i := range rapid.IntRange(0, 2).Draw(d.T, "units") {
		name := d.text("unit", "own", "own@x") + fmt.Sprint(i) + ".service"
		c.Units = append(c.Units, bootstrap.Unit{Name: name, Content: "[Unit]\nDescription=" + free("description") + "\n[Install]\nWantedBy=default.target\n", Enabled: rapid.Bool().Draw(d.T, "on")})
	}
	return c
}

// authority is a CA's certificate, made once.
var authority = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})
