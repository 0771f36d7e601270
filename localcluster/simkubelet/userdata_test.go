package simkubelet

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// userData returns a cloud-config whose kubelet gets args.
func userData(args string) string {
	return "#cloud-config\nhostname: from-hostname\nwrite_files:\n- path: /etc/default/kubelet\n  content: |\n    KUBELET_EXTRA_ARGS=\"" + args + "\"\n"
}

// configYAML returns an entry of write_files with the kubelet's configuration file, and these lines
// in it.
func configYAML(lines ...string) string {
	head := []string{"- path: /var/lib/kubelet/config.yaml", "  content: |", "    apiVersion: kubelet.config.k8s.io/v1beta1", "    kind: KubeletConfiguration"}
	for _, line := range lines {
		head = append(head, "    "+line)
	}
	return strings.Join(head, "\n") + "\n"
}

func TestUserDataThatStartsAKubelet(t *testing.T) {
	cases := map[string]struct {
		data string
		want kubeletConfig
	}{
		"no arguments: the hostname names the Node": {
			data: userData(""), want: kubeletConfig{nodeName: "from-hostname"},
		},
		"all arguments": {
			data: userData("--hostname-override=Worker-1 --node-labels=a=b,example.com/c= --register-with-taints=k=v:NoSchedule,l:NoExecute --provider-id=x://1 --v=2 --seccomp-default"),
			want: kubeletConfig{
				nodeName:   "worker-1",
				providerID: "x://1",
				labels:     map[string]string{"a": "b", "example.com/c": ""},
				taints: []corev1.Taint{
					{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}, {Key: "l", Effect: corev1.TaintEffectNoExecute},
				},
			},
		},
		"labels that a kubelet may set in the reserved namespaces": {
			data: userData("--node-labels=node.kubernetes.io/a=b,kubelet.kubernetes.io/c=d,topology.kubernetes.io/zone=z"),
			want: kubeletConfig{nodeName: "from-hostname", labels: map[string]string{
				"node.kubernetes.io/a": "b", "kubelet.kubernetes.io/c": "d", "topology.kubernetes.io/zone": "z",
			}},
		},
		"a version of its own": {
			data: userData("") + "- {path: /etc/millwright/kubelet-version, content: \"1.35.1\\n\"}\n",
			want: kubeletConfig{nodeName: "from-hostname", version: "v1.35.1"},
		},
		"a configuration file": {
			data: userData("") + configYAML("registerWithTaints: [{key: k, value: v, effect: NoSchedule}]", "serverTLSBootstrap: true", "providerID: x://1"),
			want: kubeletConfig{
				nodeName: "from-hostname", providerID: "x://1", requestsServing: true,
				taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}},
			},
		},
		"arguments win over the configuration file": {
			data: userData("--register-with-taints=l:NoExecute --cloud-provider=external") +
				configYAML("registerWithTaints: [{key: k, effect: NoSchedule}]"),
			want: kubeletConfig{
				nodeName: "from-hostname", externalCloud: true, taints: []corev1.Taint{{Key: "l", Effect: corev1.TaintEffectNoExecute}},
			},
		},
		"Ignition": {
			data: `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,Worker-2%0A"}},` +
				`{"path":"/etc/default/kubelet","contents":{"source":"data:,KUBELET_EXTRA_ARGS%3D%22--node-labels%3Da%3Db%22"}}]}}`,
			want: kubeletConfig{nodeName: "worker-2", labels: map[string]string{"a": "b"}},
		},
		"empty lists": {
			data: userData("--node-labels= --register-with-taints="),
			want: kubeletConfig{nodeName: "from-hostname"},
		},
		"a file in base64": {
			data: "#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, encoding: b64, content: S1VCRUxFVF9FWFRSQV9BUkdTPS0taG9zdG5hbWUtb3ZlcnJpZGU9YQo=}\n",
			want: kubeletConfig{nodeName: "a"},
		},
		"the last file of a path and the last line of a variable win": {
			data: "#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, content: 'KUBELET_EXTRA_ARGS=--hostname-override=a'}\n" +
				"- path: /etc/default/kubelet\n  content: |\n    # KUBELET_EXTRA_ARGS=--hostname-override=b\n    KUBELET_EXTRA_ARGS=--hostname-override=c\n    KUBELET_EXTRA_ARGS='--hostname-override=d'\n",
			want: kubeletConfig{nodeName: "d"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := parseUserData([]byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(kubeletConfig{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUserDataThatIsRefused(t *testing.T) {
	cases := map[string]struct{ data, want string }{
		"a reserved label":                        {userData("--node-labels=kubernetes.io/role=x"), "kubernetes.io/role"},
		"a reserved label, by its parent":         {userData("--node-labels=a.k8s.io/b=x"), "a.k8s.io/b"},
		"the role label":                          {userData("--node-labels=node-role.kubernetes.io/worker="), "node-role.kubernetes.io/worker"},
		"a label without a value's sign":          {userData("--node-labels=a"), "key=value"},
		"a label with a bad value":                {userData("--node-labels=a=b!"), `"a=b!"`},
		"a taint without an effect":               {userData("--register-with-taints=a=b"), "no effect"},
		"a taint with an unknown effect":          {userData("--register-with-taints=a=b:Never"), "Never"},
		"a taint with a bad key":                  {userData("--register-with-taints=/a:NoExecute"), "/a"},
		"a taint twice":                           {userData("--register-with-taints=a:NoExecute,a=b:NoExecute"), "twice"},
		"an argument that is no flag":             {userData("worker"), "worker"},
		"not YAML":                                {"#cloud-config\n\t", "cloud-config"},
		"an unknown field of the kubelet":         {userData("") + configYAML("nonsense: 1"), "nonsense"},
		"a configuration of another kind":         {userData("") + strings.ReplaceAll(configYAML(), "KubeletConfiguration", "CredentialProviderConfig"), "KubeletConfiguration"},
		"a taint that no Node can have":           {userData("") + configYAML("registerWithTaints: [{key: k, effect: Never}]"), "registerWithTaints[0]"},
		"no authority of clients":                 {userData("") + configYAML("authentication: {x509: {clientCAFile: ca.crt}}"), "/var/lib/kubelet/ca.crt"},
		"a file that is not in its encoding":      {"#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, encoding: b64, content: '!'}\n", "base64"},
		"a file in an encoding that is not known": {"#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, encoding: gz, content: ''}\n", "gz"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := parseUserData([]byte(c.data))
			if err == nil || errors.Is(err, errNoKubelet) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a refusal that names %q", err, c.want)
			}
		})
	}
}

func TestUserDataWithoutAKubelet(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                   "",
		"a script":                  "#!/bin/sh\n",
		"binary":                    "\x00\xff\x1f\x8b",
		"another file":              "#cloud-config\nwrite_files:\n- {path: /etc/motd, content: hello}\n",
		"the file without the line": "#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, content: 'OTHER=1'}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parseUserData([]byte(data)); !errors.Is(err, errNoKubelet) {
				t.Errorf("got %v, want errNoKubelet", err)
			}
		})
	}
}

// FuzzUserData holds user data against what a Node can be made of: whatever is accepted registers.
func FuzzUserData(f *testing.F) {
	f.Add(userData("--hostname-override=a --node-labels=a=b --register-with-taints=k=v:NoSchedule"))
	f.Add("#cloud-config\nwrite_files: [{path: /etc/default/kubelet, content: 'KUBELET_EXTRA_ARGS=\"'}]\n")
	f.Add(userData("") + configYAML("registerWithTaints: [{key: k, effect: NoSchedule}]"))
	f.Add(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/default/kubelet","contents":{"source":"data:,KUBELET_EXTRA_ARGS%3Da"}}]}}`)
	f.Fuzz(func(t *testing.T, data string) {
		c, _, err := parseUserData([]byte(data))
		if err != nil {
			return
		}
		if errs := validation.ValidateLabels(c.labels, nil); len(errs) > 0 {
			t.Errorf("accepted labels that no Node can have: %v", errs)
		}
		for _, taint := range c.taints {
			if taint.Key == "" || taint.Effect == "" {
				t.Errorf("accepted the taint %v", taint)
			}
		}
	})
}
