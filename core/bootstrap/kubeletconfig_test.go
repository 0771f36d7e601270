package bootstrap

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	setting = kubeletConfigPrefix
	gate    = kubeletFeaturePrefix
	flag    = kubeletFlagPrefix
)

func annotated(annotations map[string]string) *clusterv1alpha1.Machine {
	return worker(func(m *clusterv1alpha1.Machine) { m.Annotations = annotations })
}

// The Machine's annotations win over the operator's configuration, this over the defaults; who may
// call the kubelet is nobody's to change.
func TestLIFE2_TheKubeletsConfigurationIsMerged(t *testing.T) {
	m := annotated(map[string]string{
		setting + "MaxPods": "50", setting + "KubeReserved": "cpu=1, memory=1Gi", setting + "EvictionHard": "memory.available<200Mi",
		setting + "ContainerLogMaxSize": "10Mi", setting + "ContainerLogMaxFiles": "7", gate + "Some": "true",
	})
	c := cluster(func(c *Config) {
		c.KubeletConfiguration = []byte("maxPods: 20\npodPidsLimit: 99\nsystemReserved: {cpu: 300m}\n" +
			"authentication: {anonymous: {enabled: true}, webhook: {cacheTTL: 1m}}\nauthorization: {mode: AlwaysAllow}\nserverTLSBootstrap: false\nreadOnlyPort: 10255\n")
	})
	text, err := kubeletConfiguration(m, c)
	if err != nil {
		t.Fatal(err)
	}
	var got kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.MaxPods != 50 || *got.PodPidsLimit != 99 || got.ContainerLogMaxSize != "10Mi" || *got.ContainerLogMaxFiles != 7 || !got.FeatureGates["Some"] {
		t.Errorf("what was set is lost:\n%s", text)
	}
	if got.KubeReserved["memory"] != "1Gi" || got.KubeReserved["ephemeral-storage"] != "1Gi" || got.SystemReserved["cpu"] != "300m" ||
		got.SystemReserved["memory"] != "200Mi" || got.EvictionHard["memory.available"] != "200Mi" {
		t.Errorf("maps are not merged:\n%s", text)
	}
	if *got.Authentication.Anonymous.Enabled || got.Authorization.Mode != kubeletv1beta1.KubeletAuthorizationModeWebhook ||
		!got.ServerTLSBootstrap || got.ReadOnlyPort != 0 || got.Authentication.Webhook.CacheTTL.Minutes() != 1 {
		t.Errorf("whoever likes may call the kubelet:\n%s", text)
	}
}

// Each character that an operator or an annotation sets reaches the kubelet, also one that YAML
// lets nobody write as it is.
func TestLIFE2_TheKubeletsConfigurationKeepsEachCharacter(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r += 1 + r/0x3000*0xfd {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	want := all.String() + "\u007f\u0085\u009f\u2028\u2029\ufeff\ufffe\uffff"
	set, err := json.Marshal(map[string]any{"staticPodURLHeader": map[string][]string{"x": {want}}})
	if err != nil {
		t.Fatal(err)
	}
	operators, err := jsonToYAML(set)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := kubeletConfiguration(worker(), cluster(func(c *Config) { c.KubeletConfiguration = operators }))
	if err != nil {
		t.Fatal(err)
	}
	c := contents{kubelet: encoded}
	if err := c.encodeRest(cluster(), "abcdef.0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	var got kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict([]byte(c.files[0].Content), &got); err != nil {
		t.Fatal(err)
	}
	if has := got.StaticPodURLHeader["x"][0]; has != want {
		t.Errorf("it has %q, want %q", has, want)
	}
}

func TestLIFE2_WrongSettingsOfTheKubeletAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		operator    string
		names       string
	}{
		"an unknown field":             {nil, "colour: red", "colour"},
		"another case":                 {nil, "maxpods: 5", "maxpods"},
		"a field given twice":          {nil, "maxPods: 5\nmaxPods: 6", "maxPods"},
		"a text for a number":          {nil, "maxPods: many", "maxPods"},
		"an unknown annotation":        {map[string]string{setting + "Colour": "red"}, "", "Colour"},
		"an annotation without a name": {map[string]string{setting: "red"}, "", kubeletConfigPrefix},
		"a pair without a value":       {map[string]string{setting + "KubeReserved": "cpu"}, "", "KubeReserved"},
		"a gate that is no truth":      {map[string]string{gate + "Some": "perhaps"}, "", "Some"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeletConfiguration(annotated(c.annotations), cluster(func(f *Config) { f.KubeletConfiguration = []byte(c.operator) }))
			if err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, want one that names %s", err, c.names)
			}
		})
	}
	if _, _, err := AnnotatedExternalCloudProvider(map[string]string{flag + "Other": "x"}); err == nil {
		t.Error("any flag of the kubelet can be set")
	}
}

// A machine without a proxy, mirrors or digests fetches from the artifacts' own sites; a mirror of
// plain http needs digests.
func TestLIFE2_ArtifactsComeFromWhereTheyAreSaidToBe(t *testing.T) {
	digests := map[string]string{}
	for _, a := range Artifacts(clusterv1alpha1.OperatingSystemUbuntu, "1.36.3") {
		digests[a.Location] = strings.Repeat("a", 64)
	}
	files, err := artifactFiles(worker(), cluster(func(c *Config) { c.ArtifactMirror, c.Digests = "http://mirror.example.com/x/", digests }))
	if err != nil {
		t.Fatal(err)
	}
	want := "amd64 kubelet 1.36.3 file /opt/bin http://mirror.example.com/x/dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet " +
		"http://mirror.example.com/x/dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet.sha256 " + strings.Repeat("a", 64) + "\n"
	if !strings.HasPrefix(files[0].Content, want) {
		t.Errorf("the list begins with %.300q", files[0].Content)
	}
	_, err = artifactFiles(worker(), cluster(func(c *Config) { c.ArtifactMirror = "http://mirror.example.com" }))
	if err == nil || !strings.Contains(err.Error(), "digestsConfigMap") {
		t.Errorf("plain http without digests: %v", err)
	}
	maps.DeleteFunc(digests, func(location, _ string) bool { return strings.Contains(location, "arm64") })
	half := cluster(func(c *Config) { c.ArtifactMirror, c.Digests = "http://mirror.example.com", digests })
	files, err = artifactFiles(worker(), half)
	if err != nil || !strings.Contains(files[0].Content, "\narm64 runc "+runcVersion+" image /usr/local/sbin - - -\n") ||
		strings.Contains(files[0].Content, "\narm64 crictl") || strings.Contains(files[0].Content, "\namd64 runc "+runcVersion+" image") {
		t.Errorf("plain http with digests of one architecture: %v\n%s", err, files[0].Content)
	}
	delete(digests, "dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet")
	if _, err = artifactFiles(worker(), half); err == nil || !strings.Contains(err.Error(), "amd64/kubelet") {
		t.Errorf("plain http without the kubelet's digest: %v", err)
	}
}
