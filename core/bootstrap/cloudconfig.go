package bootstrap

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// MaxUserDataBytes is the most that every cloud takes.
const MaxUserDataBytes = 64 << 10

// cloudConfig is the part of cloud-init's format that is used. Encoding it is what keeps a value
// from breaking out.
type cloudConfig struct {
	Hostname          string      `json:"hostname"`
	SSHAuthorizedKeys []string    `json:"ssh_authorized_keys,omitempty"`
	PackageUpgrade    bool        `json:"package_upgrade,omitempty"`
	WriteFiles        []writeFile `json:"write_files"`
}

type writeFile struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
}

// header is what cloud-init tells the format by.
const header = "#cloud-config\n"

// Check returns an error that names what in the machine's spec cannot be rendered. It is cheap;
// only Render finds out that the user data would be too long.
func Check(m *clusterv1alpha1.Machine) error {
	_, err := kubeletArgs(m)
	return err
}

// Render returns the machine's user data, or an error that names what in the machine's spec cannot
// be rendered.
func Render(m *clusterv1alpha1.Machine) ([]byte, error) {
	args, err := kubeletArgs(m)
	if err != nil {
		return nil, err
	}
	body, err := yaml.Marshal(cloudConfig{
		Hostname:          m.Name,
		SSHAuthorizedKeys: m.Spec.ProviderSpec.Value.SSHPublicKeys,
		PackageUpgrade:    m.Spec.ProviderSpec.Value.OperatingSystemSpec.DistUpgradeOnBoot,
		WriteFiles: []writeFile{
			rootFile("/etc/default/kubelet", fmt.Sprintf("KUBELET_EXTRA_ARGS=%q\n", strings.Join(args, " "))),
			rootFile("/etc/millwright/kubelet-version", strings.TrimPrefix(m.Spec.Versions.Kubelet, "v")+"\n"),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode cloud-config: %w", err)
	}
	data := append([]byte(header), body...)
	if len(data) > MaxUserDataBytes {
		return nil, fmt.Errorf("the user data has %d bytes, at most %d are possible: use fewer labels, taints or sshPublicKeys",
			len(data), MaxUserDataBytes)
	}
	return data, nil
}

func rootFile(path, content string) writeFile {
	return writeFile{Path: path, Content: content, Owner: "root:root", Permissions: "0644"}
}

// kubeletArgs checks the machine and returns its kubelet's arguments. Everything in them is
// checked, since they are split at spaces later.
func kubeletArgs(m *clusterv1alpha1.Machine) ([]string, error) {
	value := &m.Spec.ProviderSpec.Value
	if system := value.OperatingSystem; system != clusterv1alpha1.OperatingSystemUbuntu {
		return nil, fmt.Errorf("operatingSystem %q cannot be set up: only %q can", system, clusterv1alpha1.OperatingSystemUbuntu)
	}
	for i, key := range value.SSHPublicKeys {
		// YAML 1.1 counts the last three as line breaks, too: https://yaml.org/spec/1.1/#id871856
		if strings.ContainsAny(key, "\n\r\u0085\u2028\u2029") {
			return nil, fmt.Errorf("sshPublicKeys[%d]: must be a single line", i)
		}
	}
	if problems := validation.IsDNS1123Subdomain(m.Name); len(problems) > 0 {
		return nil, fmt.Errorf("the Node's name %q: %s", m.Name, strings.Join(problems, "; "))
	}
	args := []string{"--hostname-override=" + m.Name}
	labels, err := labelPairs(NodeLabels(m))
	if err != nil {
		return nil, err
	}
	if len(labels) > 0 {
		args = append(args, "--node-labels="+strings.Join(labels, ","))
	}
	taints, err := taintPairs(m.Spec.Taints)
	if err != nil {
		return nil, err
	}
	if len(taints) > 0 {
		args = append(args, "--register-with-taints="+strings.Join(taints, ","))
	}
	return args, nil
}

func labelPairs(labels map[string]string) ([]string, error) {
	var pairs []string
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !KubeletLabel(key) {
			continue
		}
		if problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("label %q: %s", key+"="+labels[key], strings.Join(problems, "; ")))
		}
		pairs = append(pairs, key+"="+labels[key])
	}
	return pairs, errors.Join(errs...)
}

func taintPairs(taints []clusterv1alpha1.Taint) ([]string, error) {
	var pairs []string
	var errs []error
	for _, t := range taints {
		text := t.Key + "=" + t.Value + ":" + string(t.Effect)
		problems := slices.Concat(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value))
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			problems = append(problems, "the effect must be NoSchedule, PreferNoSchedule or NoExecute")
		}
		if len(problems) > 0 {
			errs = append(errs, fmt.Errorf("taint %q: %s", text, strings.Join(problems, "; ")))
		}
		pairs = append(pairs, text)
	}
	slices.Sort(pairs)
	return slices.Compact(pairs), errors.Join(errs...)
}
