package bootstrap

import (
	"path"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap/template"
)

// templated is a cluster with templates.
func templated(t *testing.T, text string) Config {
	t.Helper()
	document, err := template.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return cluster(func(c *Config) { c.Templates, c.TemplatesFrom = document, "ConfigMap ns/templates" })
}

// TestLIFE2_TemplatesAddAndReplaceFilesAndUnits shows what the values are, too.
func TestLIFE2_TemplatesAddAndReplaceFilesAndUnits(t *testing.T) {
	data, err := Render(worker(), templated(t, `files:
- path: /etc/own.yaml
  format: yaml
  content: |
    name: {{ .machine.name }}
    labels: {{ .machine.labels.b }}
    kubelet: {{ .kubelet.version }}
    system: {{ .operatingSystem }}
    server: {{ .cluster.server }}
    dns: {{ .cluster.dns }}
    domain: {{ .cluster.domain }}
- path: /etc/sysctl.d/99-zz-millwright.conf
  content: vm.max_map_count = 262144
units:
- name: millwright-report.service
  enabled: true
  content: "[Service]\nExecStart=/bin/echo {{ .machine.name }}\n[Install]\nWantedBy=multi-user.target\n"
`), token)
	if err != nil {
		t.Fatal(err)
	}
	files := readCloudConfig(t, data).WriteFiles
	want := "name: \"worker-1\"\nlabels: \"2\"\nkubelet: \"1.36.3\"\nsystem: \"ubuntu\"\nserver: \"https://api.example.com:6443\"\n" +
		"dns: [\"10.96.0.10\"]\ndomain: \"cluster.local\"\n"
	if got := contentOf(t, files, "/etc/own.yaml"); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	if got := contentOf(t, files, "/etc/sysctl.d/99-zz-millwright.conf"); got != "vm.max_map_count = 262144" {
		t.Errorf("what was there is %q", got)
	}
	if got := contentOf(t, files, path.Join(unitDirectory, "millwright-report.service")); !strings.Contains(got, "ExecStart=/bin/echo worker-1\n") {
		t.Errorf("the unit is %q", got)
	}
}

func TestLIFE2_TemplatesThatCannotBeAreNamed(t *testing.T) {
	for text, names := range map[string]string{
		"files: [{path: /etc/kubernetes/pki/ca.crt, content: x}]":                                     "/etc/kubernetes/pki/ca.crt cannot be replaced",
		"files: [{path: /var/lib/kubelet/config.yaml, content: x}]":                                   "cannot be replaced",
		"files: [{path: /etc/../etc/default/kubelet, content: x}]":                                    "must be an absolute path",
		"files: [{path: /etc/default/kubelet, content: x}]":                                           "cannot be replaced",
		"files: [{path: /etc/hostname, content: x}]":                                                  "cannot be replaced",
		"files: [{path: etc/x, content: x}]":                                                          "must be an absolute path",
		"files: [{path: /a, content: x}, {path: /a, content: z}]":                                     "is there already",
		"files: [{path: /a, format: sh, content: 'echo {{ .token }}'}]":                               "files[0] /a",
		"units: [{name: a, content: '[Service]'}]":                                                    "the name must be a unit's",
		"units: [{name: a.service, enabled: true, content: '[Service]\n\nA={{ .kubelet.version }}'}]": "needs a section [Install]",
	} {
		m := worker()
		if _, err := Render(m, templated(t, text), token); err == nil || !strings.Contains(err.Error(), names) || !strings.HasPrefix(err.Error(), "ConfigMap ns/templates: ") {
			t.Errorf("%s: %v, want %s", text, err, names)
		}
		if err := Check(m, templated(t, text)); err == nil {
			t.Errorf("%s passes the check", text)
		}
	}
	m := worker(func(m *clusterv1alpha1.Machine) {
		m.Spec.ProviderSpec.Value.OperatingSystem = clusterv1alpha1.OperatingSystemFlatcar
	})
	if _, err := Render(m, templated(t, "units: [{name: docker.service, content: '[Service]\n\nA=b'}]"), token); err == nil {
		t.Error("the image's own unit is there twice")
	}
}
