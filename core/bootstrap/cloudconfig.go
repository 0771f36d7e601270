package bootstrap

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v2"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// cloudConfig is the part of cloud-init's format that is used. Encoding it is what keeps a value
// from breaking out.
type cloudConfig struct {
	Hostname                string      `yaml:"hostname"`
	SSHAuthorizedKeys       []string    `yaml:"ssh_authorized_keys,omitempty"`
	PackageUpgrade          bool        `yaml:"package_upgrade,omitempty"`
	PackageRebootIfRequired bool        `yaml:"package_reboot_if_required,omitempty"`
	WriteFiles              []writeFile `yaml:"write_files"`
	RunCommands             [][]string  `yaml:"runcmd"`
}

type writeFile struct {
	Path        string `yaml:"path"`
	Content     string `yaml:"content"`
	Encoding    string `yaml:"encoding,omitempty"`
	Owner       string `yaml:"owner"`
	Permissions string `yaml:"permissions"`
}

// header is what cloud-init tells the format by.
const header = "#cloud-config\n"

// unitDirectory is where units of the machine's own belong.
const unitDirectory = "/etc/systemd/system"

// encodeCloudConfig writes a cloud-config (https://docs.cloud-init.io, module reference).
func encodeCloudConfig(m *clusterv1alpha1.Machine, all contents) ([]byte, error) {
	upgrade := m.Spec.ProviderSpec.Value.OperatingSystemSpec.DistUpgradeOnBoot
	config := cloudConfig{
		Hostname:                m.Name,
		SSHAuthorizedKeys:       m.Spec.ProviderSpec.Value.SSHPublicKeys,
		PackageUpgrade:          upgrade,
		PackageRebootIfRequired: upgrade,
	}
	enable := []string{"systemctl", "enable"}
	// An image may have started its own containerd or kubelet before there was a configuration.
	restart := []string{"systemctl", "restart", "--no-block"}
	for _, f := range all.files {
		config.WriteFiles = append(config.WriteFiles, newWriteFile(f))
	}
	for _, u := range all.units {
		config.WriteFiles = append(config.WriteFiles, newWriteFile(File{Path: path.Join(unitDirectory, u.Name), Content: u.Content}))
		if u.Enabled {
			enable, restart = append(enable, u.Name), append(restart, u.Name)
		}
	}
	config.RunCommands = [][]string{{"systemctl", "daemon-reload"}, enable, restart}
	body, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode cloud-config: %w", err)
	}
	return append([]byte(header), body...), nil
}

func newWriteFile(f File) writeFile {
	w := writeFile{Path: f.Path, Content: f.Content, Owner: "root:root", Permissions: fmt.Sprintf("%04o", f.mode())}
	if !isPlainText(f.Content) {
		w.Content, w.Encoding = base64.StdEncoding.EncodeToString([]byte(f.Content)), "b64"
	}
	return w
}

// isPlainText says whether every YAML parser reads the text back as it is. The encoder leaves a
// lone "=" unquoted, and cloud-init's parser ends with an error there.
func isPlainText(text string) bool {
	return text != "=" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar)
	})
}

// isSingleLine says so of all that some format counts as a line break: YAML 1.1 has the last
// three (https://yaml.org/spec/1.1/#id871856).
func isSingleLine(text string) bool {
	return !strings.ContainsAny(text, "\n\r\u0085\u2028\u2029")
}

// defaultMode are a file's permissions unless it says otherwise.
const defaultMode = 0o644

func (f File) mode() uint32 {
	if f.Mode == 0 {
		return defaultMode
	}
	return f.Mode
}
