package userdata

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/test/tier"
)

// generated is how many specs are drawn; at least enough of them must be rendered, else they are
// too hostile to show anything.
const generated, enough = 1600, 500

// TestLIFE2_NothingLeavesItsField renders generated specs, has them read by what reads them on a
// machine, and looks for each value where it belongs.
func TestLIFE2_NothingLeavesItsField(t *testing.T) {
	tier.Long(t, "it takes Ignition and cloud-init")
	rendered, cloudConfigs, nodes := map[int]spec{}, map[int][]byte{}, map[int]node{}
	for i := range generated {
		s := specs.Example(i)
		data, err := bootstrap.Render(s.machine, s.config, token)
		if (err == nil) != (bootstrap.Check(s.machine, s.config) == nil) || err != nil && data != nil {
			t.Errorf("spec %d: rendered with %v, checked with %v", i, err, bootstrap.Check(s.machine, s.config))
		}
		if err != nil {
			continue
		}
		rendered[i] = s
		if s.machine.Spec.ProviderSpec.Value.OperatingSystem == clusterv1alpha1.OperatingSystemFlatcar {
			nodes[i] = ignite(t, data)
		} else {
			cloudConfigs[i] = data
		}
	}
	t.Logf("%d of %d specs were rendered, %d of them as cloud-config", len(rendered), generated, len(cloudConfigs))
	if len(rendered) < enough {
		t.Errorf("%d of %d specs were rendered, %d are wanted", len(rendered), generated, enough)
	}
	maps.Copy(nodes, cloudInit(t, cloudConfigs))
	for _, i := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[i]
		n.check(t, rendered[i])
		if t.Failed() {
			t.Fatalf("so it is with specs.Example(%d)", i)
		}
	}
}

// check looks for each value where it belongs, and for files that nobody asked for.
func (n node) check(t *testing.T, s spec) {
	t.Helper()
	if n.hostname != s.machine.Name {
		t.Errorf("the host's name is %q, not %q", n.hostname, s.machine.Name)
	}
	sorted := cmpopts.SortSlices(strings.Compare)
	want := slices.Clone(s.machine.Spec.ProviderSpec.Value.SSHPublicKeys)
	if s.machine.Spec.ProviderSpec.Value.OperatingSystem == clusterv1alpha1.OperatingSystemFlatcar {
		slices.Sort(want)
		want = slices.Compact(want)
	}
	if diff := cmp.Diff(want, n.keys, cmpopts.EquateEmpty(), sorted); diff != "" {
		t.Errorf("keys (-given +read):\n%s", diff)
	}
	if content := s.machine.Spec.ProviderSpec.Value.OverwriteCloudConfig; content != "" {
		n.take(t, "/etc/kubernetes/cloud-config", file{content, 0o600})
	}
	for _, f := range s.config.Files {
		n.take(t, f.Path, file{f.Content, int(f.Mode)})
	}
	for _, u := range s.config.Units {
		n.take(t, path.Join(units, u.Name), file{u.Content, 0o644})
		if n.enabled[u.Name] != u.Enabled {
			t.Errorf("unit %s is enabled: %t", u.Name, !u.Enabled)
		}
	}
	n.checkKubelet(t, s)
	n.checkContainerd(t, s)
	n.checkNetwork(t, s)
	n.checkLists(t, s)
	n.checkStatic(t, s)
}

// take removes a file that must be as it was given.
func (n node) take(t *testing.T, name string, want file) {
	t.Helper()
	if got, found := n.files[name]; !found || got != want {
		t.Errorf("%s is %+v, not %+v", name, got, want)
	}
	delete(n.files, name)
}

// content returns and removes a file.
func (n node) content(t *testing.T, name string) string {
	t.Helper()
	f, found := n.files[name]
	if !found {
		t.Errorf("%s is missing", name)
	}
	delete(n.files, name)
	return f.content
}

func (n node) checkKubelet(t *testing.T, s spec) {
	t.Helper()
	var kubeconfig clientcmdv1.Config
	if f := n.files["/etc/kubernetes/bootstrap-kubelet.conf"]; f.mode != 0o600 {
		t.Errorf("whoever is on the machine may read the token: %o", f.mode)
	}
	decode(t, n.content(t, "/etc/kubernetes/bootstrap-kubelet.conf"), &kubeconfig)
	if kubeconfig.Clusters[0].Cluster.Server != s.config.Server || kubeconfig.AuthInfos[0].AuthInfo.Token != token {
		t.Errorf("the bootstrap kubeconfig is %+v", kubeconfig)
	}
	var config kubeletv1beta1.KubeletConfiguration
	decode(t, n.content(t, "/var/lib/kubelet/config.yaml"), &config)
	if *config.Authentication.Anonymous.Enabled || !*config.Authentication.Webhook.Enabled || !config.ServerTLSBootstrap || !config.RotateCertificates ||
		config.Authorization.Mode != kubeletv1beta1.KubeletAuthorizationModeWebhook || config.MaxPods != 42 {
		t.Errorf("the kubelet's configuration is %+v", config)
	}
	var own kubeletv1beta1.KubeletConfiguration
	decode(t, string(s.config.KubeletConfiguration), &own)
	if config.ClusterDomain != own.ClusterDomain || config.StaticPodPath != own.StaticPodPath || !slices.Equal(config.ClusterDNS, s.config.ClusterDNS) {
		t.Errorf("of %+v came %+v", own, config)
	}
	want := map[corev1.Taint]bool{}
	for _, taint := range s.machine.Spec.Taints {
		want[taint.NodeTaint()] = true
	}
	for _, taint := range config.RegisterWithTaints {
		if !want[taint] {
			t.Errorf("the Node registers with %v", taint)
		}
	}
	n.checkArguments(t, s)
}

// checkArguments splits the kubelet's arguments as systemd does.
func (n node) checkArguments(t *testing.T, s spec) {
	t.Helper()
	line, found := strings.CutPrefix(n.content(t, "/etc/default/kubelet"), `KUBELET_EXTRA_ARGS="`)
	line, ended := strings.CutSuffix(line, "\"\n")
	if !found || !ended || strings.ContainsAny(line, "\"\n'$\\%`") {
		t.Errorf("the kubelet's arguments leave their line: %q", line)
	}
	for argument := range strings.SplitSeq(line, " ") {
		flag, value, _ := strings.Cut(argument, "=")
		switch flag {
		case "--hostname-override":
			if value != s.machine.Name {
				t.Errorf("the Node is called %q", value)
			}
		case "--node-labels":
			for pair := range strings.SplitSeq(value, ",") {
				key, label, _ := strings.Cut(pair, "=")
				if got, given := s.machine.Labels[key]; !given || got != label {
					t.Errorf("the Node has the label %s", pair)
				}
			}
		case "--node-ip":
			if value != "0.0.0.0" && value != "::" {
				t.Errorf("the Node's address is %q", value)
			}
		case "--cloud-provider":
		default:
			t.Errorf("the kubelet has the argument %q", argument)
		}
	}
}

// checkContainerd reads TOML as containerd does.
func (n node) checkContainerd(t *testing.T, s spec) {
	t.Helper()
	var config struct {
		Version int
		Plugins map[string]map[string]any
	}
	if err := toml.Unmarshal([]byte(n.content(t, "/etc/containerd/config.toml")), &config); err != nil {
		t.Fatal(err)
	}
	pinned, _ := config.Plugins["io.containerd.cri.v1.images"]["pinned_images"].(map[string]any)
	if config.Version != 3 || len(config.Plugins) != 2 || s.config.PauseImage != "" && pinned["sandbox"] != s.config.PauseImage {
		t.Errorf("containerd's configuration is %+v", config)
	}
	for host, mirrors := range s.config.RegistryMirrors {
		var hosts struct{ Host map[string]map[string]any }
		if err := toml.Unmarshal([]byte(n.content(t, path.Join("/etc/containerd/certs.d", host, "hosts.toml"))), &hosts); err != nil {
			t.Fatal(err)
		}
		given := slices.Compact(slices.Sorted(slices.Values(mirrors)))
		if !slices.Equal(slices.Sorted(maps.Keys(hosts.Host)), given) {
			t.Errorf("the mirrors of %s are %v, not %v", host, hosts.Host, given)
		}
	}
}

// checkNetwork reads the address and the DNS servers as systemd does.
func (n node) checkNetwork(t *testing.T, s spec) {
	t.Helper()
	network := s.machine.Spec.ProviderSpec.Value.Network
	if network.CIDR != "" {
		options, err := unit.DeserializeOptions(strings.NewReader(n.content(t, "/etc/systemd/network/05-millwright.network")))
		want := []*unit.UnitOption{
			unit.NewUnitOption("Match", "Name", "en* eth*"), unit.NewUnitOption("Network", "DHCP", "no"),
			unit.NewUnitOption("Network", "Address", network.CIDR), unit.NewUnitOption("Network", "Gateway", network.Gateway),
		}
		if diff := cmp.Diff(want, options); err != nil || diff != "" {
			t.Errorf("the network is (-want +got, %v):\n%s", err, diff)
		}
	}
	if len(network.DNS.Servers) > 0 {
		options, err := unit.DeserializeOptions(strings.NewReader(n.content(t, "/etc/systemd/resolved.conf.d/millwright.conf")))
		want := []*unit.UnitOption{
			unit.NewUnitOption("Resolve", "DNS", strings.Join(network.DNS.Servers, " ")), unit.NewUnitOption("Resolve", "Domains", "~."),
		}
		if diff := cmp.Diff(want, options); err != nil || diff != "" {
			t.Errorf("DNS is (-want +got, %v):\n%s", err, diff)
		}
	}
}

// checkLists checks what is a line, or some words of one, for each value.
func (n node) checkLists(t *testing.T, s spec) {
	t.Helper()
	for line := range strings.Lines(n.content(t, "/etc/millwright/artifacts")) {
		if words := strings.Fields(line); len(words) != 8 || strings.Count(line, " ") != 7 || words[0] != "amd64" && words[0] != "arm64" {
			t.Errorf("an artifact is %q", line)
		}
	}
	if got := n.content(t, "/etc/millwright/api-server"); got != s.config.Server+"\n" {
		t.Errorf("the API server is %q", got)
	}
	if s.config.HTTPProxy != "" {
		lines := strings.Split(n.content(t, "/etc/millwright/proxy.env"), "\n")
		if len(lines) != 7 || lines[0] != `HTTP_PROXY="`+s.config.HTTPProxy+`"` {
			t.Errorf("the proxy is %q", lines)
		}
	}
	packages := slices.Clone(s.config.Packages)
	flatcar := s.machine.Spec.ProviderSpec.Value.OperatingSystem == clusterv1alpha1.OperatingSystemFlatcar
	if s.config.BlockMetadata && !flatcar {
		packages = append(packages, "nftables")
	}
	if len(packages) > 0 {
		if got := strings.Fields(n.content(t, "/etc/millwright/packages")); !slices.Equal(got, packages) {
			t.Errorf("the packages are %q", got)
		}
	}
	if len(s.config.NTPServers) > 0 {
		want := "[Time]\nNTP=" + strings.Join(s.config.NTPServers, " ") + "\n"
		if got := n.content(t, "/etc/systemd/timesyncd.conf.d/millwright.conf"); got != want {
			t.Errorf("the time servers are %q", got)
		}
	}
}

// checkStatic compares what is left with the files of a machine with nothing but what is required.
func (n node) checkStatic(t *testing.T, s spec) {
	t.Helper()
	left := slices.DeleteFunc(slices.Sorted(maps.Keys(n.files)), func(name string) bool { return expected[name] })
	if len(left) > 0 {
		t.Errorf("nobody asked for %q", left)
	}
	for _, name := range slices.Sorted(maps.Keys(n.files)) {
		if strings.Contains(n.files[name].content, token) {
			t.Errorf("%s holds the token", name)
		}
	}
	if _, has := n.files["/etc/millwright/metadata.nft"]; has != s.config.BlockMetadata {
		t.Errorf("blockMetadata is %t, its file there: %t", s.config.BlockMetadata, has)
	}
}

// expected are the files that hold nothing of a spec, or nothing but what checkConfig has checked.
var expected = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{
		"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/client-ca.crt", "/etc/millwright/kubelet-version", "/etc/millwright/not-before",
		"/etc/millwright/metadata.nft", "/etc/crictl.yaml", "/etc/modules-load.d/millwright.conf", "/etc/sysctl.d/99-zz-millwright.conf",
		"/etc/systemd/journald.conf.d/millwright.conf", "/etc/systemd/logind.conf.d/zz-millwright.conf", "/opt/bin/millwright-bootstrap",
		"/etc/flatcar/update.conf", "/etc/apt/apt.conf.d/99-millwright", "/etc/apt/apt.conf.d/99-zz-millwright-disable-auto-update",
		"/etc/apt/apt.conf.d/95-millwright-proxy", "/etc/chrony/sources.d/millwright.sources",
		"/usr/local/share/ca-certificates/millwright-0.crt", "/etc/ssl/certs/millwright-0.pem",
		units + "/containerd.service", units + "/containerd.service.d/10-millwright.conf", units + "/kubelet.service",
		units + "/kubelet.service.d/10-kubeadm.conf", units + "/kubelet.service.d/20-watchdog.conf", units + "/millwright-bootstrap.service", units + "/millwright-report.service",
		units + "/millwright-cleanup.service", units + "/millwright-cleanup.path", units + "/millwright-metadata.service",
	} {
		names[name] = true
	}
	return names
}()

// decode decodes YAML strictly.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Error(err)
	}
}
