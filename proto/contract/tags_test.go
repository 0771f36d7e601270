package contract

import (
	"maps"
	"strings"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestTagsFit(t *testing.T) {
	tags := map[string]string{"cluster.k8s.io/machine": "default/nodes-1", "b": "Mühle"}
	for name, tc := range map[string]struct {
		limits *driverv1alpha1.TagLimits
		want   map[string]string
	}{
		"no limits":  {nil, tags},
		"any tags":   {&driverv1alpha1.TagLimits{}, tags},
		"no tags":    {&driverv1alpha1.TagLimits{MaxTags: -1}, nil},
		"one":        {&driverv1alpha1.TagLimits{MaxTags: 1}, map[string]string{"b": "Mühle"}},
		"characters": {&driverv1alpha1.TagLimits{Characters: "a-z0-9_-"}, map[string]string{"cluster-k8s-io-machine": "default-nodes-1", "b": "--hle"}},
		"lengths":    {&driverv1alpha1.TagLimits{MaxKeyLength: 7, MaxValueLength: 2}, map[string]string{"cluster": "de", "b": "Mü"}},
	} {
		if got := FitTags(tags, tc.limits); !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTagLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits *driverv1alpha1.TagLimits
		want   string
	}{
		"good":         {&driverv1alpha1.TagLimits{MaxTags: 50, MaxKeyLength: 63, MaxValueLength: 63, Characters: `a-z0-9_\-`}, ""},
		"no class":     {&driverv1alpha1.TagLimits{Characters: "z-a"}, "limits.tags.characters: is no RE2"},
		"without dash": {&driverv1alpha1.TagLimits{Characters: "a-z"}, "limits.tags.characters: does not hold"},
		"negative":     {&driverv1alpha1.TagLimits{MaxKeyLength: -1}, "limits.tags: holds a negative"},
	} {
		got := CheckAnswer(&driverv1alpha1.GetCapabilitiesResponse{ProviderIdPrefix: "x", Limits: &driverv1alpha1.Limits{Tags: tc.limits}}).Error()
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestRevisions(t *testing.T) {
	for told, works := range map[int32]bool{0: true, 1: true, Revision: true, Revision + 1: true, Revision + 2: false, 1 << 30: false, -1: true} {
		if err := CheckRevision(told); (err == nil) != works {
			t.Errorf("revision %d: %v, works %v", told, err, works)
		}
	}
}
