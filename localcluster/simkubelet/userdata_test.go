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
			got, err := parseUserData([]byte(c.data))
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
		"a file that is not in its encoding":      {"#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, encoding: b64, content: '!'}\n", "base64"},
		"a file in an encoding that is not known": {"#cloud-config\nwrite_files:\n- {path: /etc/default/kubelet, encoding: gz, content: ''}\n", "gz"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parseUserData([]byte(c.data))
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
			if _, err := parseUserData([]byte(data)); !errors.Is(err, errNoKubelet) {
				t.Errorf("got %v, want errNoKubelet", err)
			}
		})
	}
}

// FuzzUserData holds user data against what a Node can be made of: whatever is accepted registers.
func FuzzUserData(f *testing.F) {
	f.Add(userData("--hostname-override=a --node-labels=a=b --register-with-taints=k=v:NoSchedule"))
	f.Add("#cloud-config\nwrite_files: [{path: /etc/default/kubelet, content: 'KUBELET_EXTRA_ARGS=\"'}]\n")
	f.Fuzz(func(t *testing.T, data string) {
		c, err := parseUserData([]byte(data))
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
