package simkubelet

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/millwright-dev/millwright/localcluster/simkubelet/firstboot"
)

// bootstrapRoot is a machine with that bootstrap kubeconfig, of users and clusters written as in a
// flow mapping.
func bootstrapRoot(cluster, user string) *firstboot.Root {
	return &firstboot.Root{Files: map[string]firstboot.File{
		configFile: {},
		bootstrapFile: {Content: "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
			"clusters: [{name: c, cluster: {server: 'https://192.0.2.1:6443', " + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n"},
		"/etc/kubernetes/pki/ca.crt": {Content: "the authority"},
	}}
}

func TestBootstrapKubeconfig(t *testing.T) {
	for name, ca := range map[string]string{"relative": "pki/ca.crt", "absolute": "/etc/kubernetes/pki/ca.crt"} {
		t.Run(name, func(t *testing.T) {
			config, err := bootstrapConfig(bootstrapRoot("certificate-authority: "+ca, "token: abcdef.0123456789abcdef"))
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != "https://192.0.2.1:6443" || config.BearerToken != "abcdef.0123456789abcdef" || string(config.CAData) != "the authority" {
				t.Errorf("server %q, authority %q, token of %d characters", config.Host, config.CAData, len(config.BearerToken))
			}
		})
	}
}

func TestBootstrapKubeconfigThatIsRefused(t *testing.T) {
	noConfig, noKubeconfig := bootstrapRoot("", ""), bootstrapRoot("", "")
	delete(noConfig.Files, configFile)
	delete(noKubeconfig.Files, bootstrapFile)
	garbage := bootstrapRoot("", "")
	garbage.Files[bootstrapFile] = firstboot.File{Content: "\t"}
	for name, c := range map[string]struct {
		root *firstboot.Root
		want string
	}{
		"no configuration file":       {noConfig, configFile},
		"no bootstrap kubeconfig":     {noKubeconfig, bootstrapFile},
		"not YAML":                    {garbage, bootstrapFile},
		"an authority that is absent": {bootstrapRoot("certificate-authority: /etc/hosts", "token: t"), "/etc/hosts"},
		"a program":                   {bootstrapRoot("", "exec: {command: touch, apiVersion: client.authentication.k8s.io/v1}"), "not simulated"},
		"a file of this machine":      {bootstrapRoot("", "tokenFile: /etc/hostname"), "not simulated"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := bootstrapConfig(c.root); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a refusal that names %q", err, c.want)
			}
		})
	}
}

// TestKubeletKeepsOnlyServerAndAuthority has the client with the certificate drop what a kubelet
// drops when it writes its kubeconfig: the name that it would check, and the token.
func TestKubeletKeepsOnlyServerAndAuthority(t *testing.T) {
	bootstrap := &rest.Config{Host: "https://192.0.2.1", BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{ServerName: "other"}}
	client, err := newNodeClient(bootstrap, identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.close()
	if name := client.transport.TLSClientConfig; name != nil && name.ServerName != "" {
		t.Errorf("the kubelet checks the name %q", name.ServerName)
	}
}
