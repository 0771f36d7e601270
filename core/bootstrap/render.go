package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// encode writes a machine down in the format that its operating system reads at its first boot.
type encode func(*clusterv1alpha1.Machine, contents) ([]byte, error)

// contents are what is put on a machine.
type contents struct {
	files []File
	units []Unit
	// kubelet is the kubelet's configuration, as JSON.
	kubelet []byte
}

// encoders of the operating systems that can be set up.
var encoders = map[clusterv1alpha1.OperatingSystem]encode{
	clusterv1alpha1.OperatingSystemUbuntu:  encodeCloudConfig,
	clusterv1alpha1.OperatingSystemFlatcar: encodeIgnition,
}

// Check returns an error that names what in the machine's spec or in the configuration cannot be
// rendered. Only Render finds out that the user data would be too long.
func Check(m *clusterv1alpha1.Machine, c Config) error {
	_, err := assemble(m, c)
	return err
}

// Render returns the machine's user data, or an error that names what in the machine's spec or in
// the configuration cannot be rendered. It is pure. token is the bootstrap token of this machine
// alone, ID.SECRET; without one the machine cannot join.
func Render(m *clusterv1alpha1.Machine, c Config, token string) ([]byte, error) {
	all, err := assemble(m, c)
	if err != nil {
		return nil, err
	}
	if err := all.encodeRest(c, token); err != nil {
		return nil, err
	}
	system := m.Spec.ProviderSpec.Value.OperatingSystem
	data, err := encoders[system](m, all)
	if err != nil {
		return nil, err
	}
	return fit(data, c.MaxBytes, system, all)
}

// assemble collects and checks what is put on the machine. Only what is dear to encode, and the
// token, are left to encodeRest: a check is made more often than a machine.
func assemble(m *clusterv1alpha1.Machine, c Config) (contents, error) {
	if err := checkMachine(m); err != nil {
		return contents{}, err
	}
	if err := checkConfig(c); err != nil {
		return contents{}, err
	}
	var all contents
	for _, part := range []func(*clusterv1alpha1.Machine, Config) ([]File, error){
		authorityFiles, kubeletFiles, containerdFiles, artifactFiles, networkFiles, systemFiles,
	} {
		files, err := part(m, c)
		if err != nil {
			return contents{}, err
		}
		all.files = append(all.files, files...)
	}
	var err error
	if all.kubelet, err = kubeletConfiguration(m, c); err != nil {
		return contents{}, err
	}
	if err := all.addStatic(m, c); err != nil {
		return contents{}, err
	}
	if err := all.addTemplates(m, c); err != nil {
		return contents{}, err
	}
	return all, all.addOwn(m, c.Files, c.Units)
}

// encodeRest adds the kubelet's configuration and its bootstrap kubeconfig.
func (all *contents) encodeRest(c Config, token string) error {
	config, err := jsonToYAML(all.kubelet)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kubeletConfigPath, err)
	}
	kubeconfig, err := bootstrapKubeconfig(c.Server, token)
	if err != nil {
		return err
	}
	all.files = append(all.files, File{Path: kubeletConfigPath, Content: string(config), Mode: secretMode}, kubeconfig)
	return nil
}

// jsonToYAML writes JSON down as YAML, which people read more easily.
func jsonToYAML(encoded []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber() // a large number stays as it is
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	return yaml.Marshal(decoded)
}

// checkMachine checks what stands in the machine's spec as it is used.
func checkMachine(m *clusterv1alpha1.Machine) error {
	value := &m.Spec.ProviderSpec.Value
	if _, known := encoders[value.OperatingSystem]; !known {
		return fmt.Errorf("operatingSystem %q cannot be set up: use %q or %q", value.OperatingSystem,
			clusterv1alpha1.OperatingSystemUbuntu, clusterv1alpha1.OperatingSystemFlatcar)
	}
	for i, key := range value.SSHPublicKeys {
		if !isSingleLine(key) || !isPlainText(key) {
			return fmt.Errorf("sshPublicKeys[%d]: must be a single line of text", i)
		}
	}
	if _, err := version.ParseSemantic(m.Spec.Versions.Kubelet); err != nil {
		return fmt.Errorf("spec.versions.kubelet: %w", err)
	}
	if problems := validation.IsDNS1123Subdomain(m.Name); len(problems) > 0 {
		return fmt.Errorf("the Node's name %q: %s", m.Name, problems[0])
	}
	// Linux takes no longer host name, and a certificate no longer common name.
	if len(m.Name) > validation.DNS1123LabelMaxLength {
		return fmt.Errorf("the Node's name %q: must have at most %d characters: shorten the MachineDeployment's name",
			m.Name, validation.DNS1123LabelMaxLength)
	}
	return nil
}
