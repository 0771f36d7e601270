package nodeflags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// readTaints reads the values of --node-startup-taint: KEY[=VALUE]:EFFECT, as kubectl taint has
// them. None is given twice.
func readTaints(texts []string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for _, text := range texts {
		taint, err := readTaint(text)
		if err == nil && slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			err = errors.New("is given twice; leave one out")
		}
		if err != nil {
			return nil, fmt.Errorf("--node-startup-taint=%s: %w", text, err)
		}
		taints = append(taints, taint)
	}
	return taints, nil
}

// readTaint reads one taint.
func readTaint(text string) (corev1.Taint, error) {
	pair, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		problems = append(problems, "the effect, behind the colon, must be NoSchedule, PreferNoSchedule or NoExecute")
	}
	if len(problems) > 0 {
		return corev1.Taint{}, fmt.Errorf("use KEY[=VALUE]:EFFECT: %s", strings.Join(problems, "; "))
	}
	return taint, nil
}
