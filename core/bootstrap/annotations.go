package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Annotations of a Machine that set up its kubelet; behind the slash stands what. They are those of
// Kubermatic's machine-controller.
const (
	kubeletConfigPrefix  = "v1.kubelet-config.machine-controller.kubermatic.io/"
	kubeletFeaturePrefix = "v1.kubelet-featuregates.machine-controller.kubermatic.io/"
	kubeletFlagPrefix    = "v1.kubelet-flags.machine-controller.kubermatic.io/"
)

// externalCloudProvider is the flag, as annotation, that there is a cloud controller manager.
const externalCloudProvider = "ExternalCloudProvider"

// annotatedKubeletConfiguration is what the annotations set of the kubelet's configuration.
func annotatedKubeletConfiguration(annotations map[string]string) (map[string]any, error) {
	set, gates := map[string]any{}, map[string]any{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		var err error
		if name, is := strings.CutPrefix(key, kubeletConfigPrefix); is {
			err = setKubeletField(set, name, value)
		} else if name, is := strings.CutPrefix(key, kubeletFeaturePrefix); is {
			gates[name], err = strconv.ParseBool(value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %w", key, err))
		}
	}
	if len(gates) > 0 {
		set["featureGates"] = gates
	}
	return set, errors.Join(errs...)
}

// AnnotatedExternalCloudProvider is what the annotations say of a cloud controller manager, if
// they do.
func AnnotatedExternalCloudProvider(annotations map[string]string) (external, said bool, err error) {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, is := strings.CutPrefix(key, kubeletFlagPrefix)
		if !is {
			continue
		}
		if name != externalCloudProvider {
			errs = append(errs, fmt.Errorf("annotation %s: the only flag that can be set is %s", key, externalCloudProvider))
			continue
		}
		value, parseErr := strconv.ParseBool(annotations[key])
		if parseErr != nil {
			errs = append(errs, fmt.Errorf("annotation %s: use true or false", key))
		}
		external, said = value, true
	}
	return external, said, errors.Join(errs...)
}

// separators between name and value in annotations that hold several.
var separators = map[string]string{
	"kubeReserved": "=", "systemReserved": "=", "evictionHard": "<", "evictionSoft": "<",
	"evictionSoftGracePeriod": "=", "evictionMinimumReclaim": "=",
}

// setKubeletField sets the field that an annotation such as MaxPods or KubeReserved stands for.
func setKubeletField(set map[string]any, name, value string) error {
	field := strings.ToLower(name[:min(1, len(name))]) + name[min(1, len(name)):]
	separator, isMap := separators[field]
	if isMap {
		pairs := map[string]any{}
		for pair := range strings.SplitSeq(value, ",") {
			k, v, found := strings.Cut(strings.TrimSpace(pair), separator)
			if !found || k == "" || v == "" {
				return fmt.Errorf("%q: use NAME%sVALUE, several separated by commas", pair, separator)
			}
			pairs[k] = v
		}
		set[field] = pairs
		return nil
	}
	// A number or a truth value is one, all else is text: the strict decoder knows which is due.
	var scalar any = value
	var parsed any
	if json.Unmarshal([]byte(value), &parsed) == nil {
		scalar = parsed
	}
	return setScalar(set, field, scalar, value)
}

// setScalar takes the reading of the value that the field has the type for.
func setScalar(set map[string]any, field string, readings ...any) error {
	var err error
	for _, reading := range readings {
		var data []byte
		if data, err = json.Marshal(map[string]any{field: reading}); err != nil {
			return err
		}
		if err = decodeStrictly(data, &kubeletv1beta1.KubeletConfiguration{}); err == nil {
			set[field] = reading
			return nil
		}
	}
	return err
}
