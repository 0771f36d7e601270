package simkubelet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/millwright-dev/millwright/localcluster/simkubelet/firstboot"
)

// kubeletFile is where distributions of the kubelet take arguments from, and kubeletArgs the
// variable in it. versionFile names the version of the kubelet to install. Where there is no such
// file, the image's own kubelet runs.
const (
	kubeletFile = "/etc/default/kubelet"
	kubeletArgs = "KUBELET_EXTRA_ARGS"
	versionFile = "/etc/millwright/kubelet-version"
)

// errNoKubelet says that the user data starts no kubelet: this VM is none of our business.
var errNoKubelet = errors.New("user data starts no kubelet")

// kubeletConfig is what the user data tells a kubelet.
type kubeletConfig struct {
	// nodeName is empty when the VM's own name decides.
	nodeName string
	// version has a leading v; it is empty when the user data does not choose one.
	version    string
	providerID string
	labels     map[string]string
	taints     []corev1.Taint
	// externalCloud says that a cloud controller manager is to complete the Node.
	externalCloud bool
	// requestsServing says that the kubelet requests a certificate for its own API.
	requestsServing bool
}

// parseUserData reads user data as cloud-init or Ignition and then the kubelet would, and returns
// the machine's files, too. The error is errNoKubelet when there is nothing to run, else the reason
// why the real ones would not run it.
func parseUserData(data []byte) (kubeletConfig, *firstboot.Root, error) {
	root, err := firstboot.Apply(data)
	if errors.Is(err, firstboot.ErrUnknownFormat) {
		return kubeletConfig{}, nil, errNoKubelet
	}
	if err != nil {
		return kubeletConfig{}, nil, err
	}
	args, found := variable(root.Files[kubeletFile].Content, kubeletArgs)
	if !found {
		return kubeletConfig{}, nil, errNoKubelet
	}
	var parsed kubeletConfig
	if err := parsed.readConfigFile(root); err != nil {
		return kubeletConfig{}, nil, err
	}
	if err := parsed.readArgs(strings.Fields(args)); err != nil {
		return kubeletConfig{}, nil, fmt.Errorf("read %s: %w", kubeletArgs, err)
	}
	if version, found := root.Files[versionFile]; found {
		parsed.version = "v" + strings.TrimPrefix(strings.TrimSpace(version.Content), "v")
	}
	if parsed.nodeName == "" {
		parsed.nodeName = root.Hostname
	}
	parsed.nodeName = strings.ToLower(parsed.nodeName) // As the kubelet's nodeutil.GetHostname does.
	return parsed, root, nil
}

// variable returns a variable's value from a file of KEY=value lines, with or without quotes, as
// systemd reads it.
func variable(content, name string) (string, bool) {
	value, found := "", false
	for line := range strings.Lines(content) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"=")
		if !ok {
			continue
		}
		value, found = v, true
		if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
			value = v[1 : n-1]
		}
	}
	return value, found
}

// readArgs reads the arguments that make a difference here and passes over the others. They win
// over the configuration file, as with a real kubelet.
func (c *kubeletConfig) readArgs(args []string) error {
	for _, arg := range args {
		flag, value, found := strings.Cut(arg, "=")
		if !strings.HasPrefix(flag, "--") {
			return fmt.Errorf("argument %q is not of the form --flag=value", arg)
		}
		if !found {
			continue
		}
		var err error
		switch flag {
		case "--hostname-override":
			c.nodeName = value
		case "--provider-id":
			c.providerID = value
		case "--cloud-provider":
			c.externalCloud = value == "external"
		case "--node-labels":
			c.labels, err = parseLabels(value)
		case "--register-with-taints":
			c.taints, err = parseTaints(value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// parseLabels refuses what the kubelet's ValidateKubeletFlags refuses.
func parseLabels(value string) (map[string]string, error) {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		if pair == "" {
			continue
		}
		key, v, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("%q is not of the form key=value", pair)
		}
		if isKubernetesLabel(key) && !kubeletapis.IsKubeletLabel(key) {
			return nil, fmt.Errorf("a kubelet must not set the label %q: in the namespaces kubernetes.io and k8s.io it may use those below %s, and %s",
				key, strings.Join(kubeletapis.KubeletLabelNamespaces(), ", "), strings.Join(kubeletapis.KubeletLabels(), ", "))
		}
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(v)...)
		if len(problems) > 0 {
			return nil, fmt.Errorf("label %q: %s", pair, strings.Join(problems, "; "))
		}
		labels[key] = v
	}
	return labels, nil
}

func isKubernetesLabel(key string) bool {
	namespace, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(reserved string) bool {
		return namespace == reserved || strings.HasSuffix(namespace, "."+reserved)
	})
}

// parseTaints reads key=value:Effect and key:Effect, and refuses what the kubelet's flag of that
// type refuses.
func parseTaints(value string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for text := range strings.SplitSeq(value, ",") {
		if text == "" {
			continue
		}
		taint, err := parseTaint(text)
		if err != nil {
			return nil, fmt.Errorf("taint %q: %w", text, err)
		}
		if slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
			return nil, fmt.Errorf("taint %q: key and effect stand there twice", text)
		}
		taints = append(taints, taint)
	}
	return taints, nil
}

func parseTaint(text string) (corev1.Taint, error) {
	rest, effect, found := strings.Cut(text, ":")
	if !found {
		return corev1.Taint{}, errors.New("has no effect")
	}
	key, value, _ := strings.Cut(rest, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	return taint, validateTaint(taint)
}

func validateTaint(taint corev1.Taint) error {
	problems := append(validation.IsQualifiedName(taint.Key), validation.IsValidLabelValue(taint.Value)...)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	default:
		return fmt.Errorf("effect %q does not exist", taint.Effect)
	}
}
