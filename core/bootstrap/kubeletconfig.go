package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// defaultDomain is the domain of Services in nearly every cluster.
const defaultDomain = "cluster.local"

// kubeletConfigPath is where kubeadm has it, too.
const kubeletConfigPath = "/var/lib/kubelet/config.yaml"

// kubeletConfiguration returns the kubelet's configuration as JSON: the defaults, over them what
// the operator and the Machine's annotations set, over these what must not be changed. What was
// merged is decoded strictly.
func kubeletConfiguration(m *clusterv1alpha1.Machine, c Config) ([]byte, error) {
	merged := defaultKubeletConfiguration(c)
	own, err := readKubeletConfiguration(c.KubeletConfiguration)
	if err != nil {
		return nil, err
	}
	merge(merged, own)
	annotated, err := annotatedKubeletConfiguration(m.Annotations)
	if err != nil {
		return nil, err
	}
	merge(merged, annotated)
	taints, err := registrationTaints(m, c)
	if err != nil {
		return nil, err
	}
	merge(merged, fixedKubeletConfiguration(taints))
	encoded, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("encode the kubelet's configuration: %w", err)
	}
	if err := decodeStrictly(encoded, &kubeletv1beta1.KubeletConfiguration{}); err != nil {
		return nil, fmt.Errorf("the kubelet's configuration: %w", err)
	}
	return encoded, nil
}

// readKubeletConfiguration reads a KubeletConfiguration, as strictly as the kubelet does.
func readKubeletConfiguration(data []byte) (map[string]any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	encoded, err := yaml.YAMLToJSONStrict(data)
	if err == nil {
		err = decodeStrictly(encoded, &kubeletv1beta1.KubeletConfiguration{})
	}
	var fields map[string]any
	if err == nil {
		err = yaml.Unmarshal(data, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeletConfiguration: %w", err)
	}
	return fields, nil
}

// merge puts what is over into base: objects are merged, all else is replaced.
func merge(base, over map[string]any) {
	for key, value := range over {
		below, isObject := base[key].(map[string]any)
		if inner, both := value.(map[string]any); both && isObject {
			merged := maps.Clone(below)
			merge(merged, inner)
			value = merged
		}
		base[key] = value
	}
}

// defaultKubeletConfiguration is what operator and user may change. The numbers without a further
// word are those of Kubermatic's operating-system-manager.
func defaultKubeletConfiguration(c Config) map[string]any {
	reserved := map[string]any{"cpu": "200m", "memory": "200Mi", "ephemeral-storage": "1Gi"}
	return map[string]any{
		"clusterDNS":    c.ClusterDNS,
		"clusterDomain": clusterDomain(c),
		"cgroupDriver":  "systemd",
		// The stub of systemd-resolved would have CoreDNS ask itself: millwright-bootstrap links
		// what is right for the machine.
		"resolvConf": "/run/millwright/resolv.conf",
		// Flatcar's /usr cannot be written to.
		"volumePluginDir":              "/var/lib/kubelet/volume-plugins",
		"protectKernelDefaults":        true,
		"seccompDefault":               true,
		"kubeReserved":                 reserved,
		"systemReserved":               maps.Clone(reserved),
		"mergeDefaultEvictionSettings": true,
		"maxPods":                      110,
		"podPidsLimit":                 4096,
		"containerLogMaxSize":          "50Mi",
		"containerLogMaxFiles":         5,
		"serializeImagePulls":          false,
		"maxParallelImagePulls":        5,
		// Together less than the 60 s after which some clouds cut the power.
		"shutdownGracePeriod":             "45s",
		"shutdownGracePeriodCriticalPods": "15s",
	}
}

// fixedKubeletConfiguration is what nobody may change: who may call the kubelet, what its
// certificates are, and what the machine's other files rely on.
func fixedKubeletConfiguration(taints []corev1.Taint) map[string]any {
	fixed := map[string]any{
		"apiVersion": kubeletv1beta1.SchemeGroupVersion.String(),
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": clientCAPath},
		},
		"authorization":            map[string]any{"mode": string(kubeletv1beta1.KubeletAuthorizationModeWebhook)},
		"rotateCertificates":       true,
		"serverTLSBootstrap":       true,
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"registerNode":             true,
		"registerWithTaints":       taintList(taints),
	}
	// The kubelet would serve without TLS bootstrap, or without asking who calls.
	for _, unset := range []string{"tlsCertFile", "tlsPrivateKeyFile"} {
		fixed[unset] = ""
	}
	fixed["readOnlyPort"] = 0
	return fixed
}

// taintList leaves out what a taint of the kubelet's configuration does not have.
func taintList(taints []corev1.Taint) []corev1.Taint {
	if taints == nil {
		return []corev1.Taint{}
	}
	for i := range taints {
		taints[i].TimeAdded = (*metav1.Time)(nil)
	}
	return taints
}
