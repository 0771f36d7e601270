package apischema

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// stateMetrics is the part of kube-state-metrics' configuration that is used. Source:
// https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/extend/customresourcestate-metrics.md
type stateMetrics struct {
	GroupVersionKind struct{ Group, Version, Kind string }
	MetricNamePrefix string
	LabelsFromPath   map[string][]string
	Metrics          []struct {
		Name, Help string
		Each       struct {
			Type  string
			Gauge struct {
				Path, ValueFrom []string
				LabelsFromPath  map[string][]string
				NilIsZero       bool
			}
			Info struct {
				Path           []string
				LabelsFromPath map[string][]string
			}
			StateSet struct {
				LabelName  string
				Path, List []string
			}
		}
	}
}

// What kube-state-metrics is told to show is there, in objects as the CRDs have them.
func TestOPS6_StateMetricsShowFieldsThatThereAre(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(deployDir, "kube-state-metrics", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		RBAC struct {
			ExtraRules []struct{ APIGroups, Resources, Verbs []string }
		}
		CustomResourceState struct {
			Enabled bool
			Config  struct {
				Kind string
				Spec struct{ Resources []stateMetrics }
			}
		}
	}
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		t.Fatal(err)
	}
	mayRead := values.RBAC.ExtraRules[0].Resources
	resources := values.CustomResourceState.Config.Spec.Resources
	if len(resources) != len(mayRead) {
		t.Errorf("it shows %d kinds and may read %v", len(resources), mayRead)
	}
	for _, resource := range resources {
		plural := strings.ToLower(resource.GroupVersionKind.Kind) + "s"
		if !slices.Contains(mayRead, plural) {
			t.Errorf("it may not read %s", plural)
		}
		root := schemaOf(t, plural)
		for _, metric := range resource.Metrics {
			checkStateMetric(t, root, resource.MetricNamePrefix+"_"+metric.Name, metric.Each.Type, fields{
				path:   slices.Concat(metric.Each.Gauge.Path, metric.Each.Info.Path, metric.Each.StateSet.Path),
				value:  metric.Each.Gauge.ValueFrom,
				labels: slices.AppendSeq(slices.Collect(maps.Values(metric.Each.Gauge.LabelsFromPath)), maps.Values(metric.Each.Info.LabelsFromPath)),
				states: metric.Each.StateSet.List,
			})
		}
	}
}

// fields are what a metric is made from: path leads to an object or a list, the others go on from
// there.
type fields struct {
	path, value []string
	labels      [][]string
	states      []string
}

func checkStateMetric(t *testing.T, root *apiextensionsv1.JSONSchemaProps, name, kind string, f fields) {
	t.Helper()
	at := follow(root, f.path)
	if at == nil {
		t.Errorf("%s: there is no field %v", name, f.path)
		return
	}
	for _, path := range append(f.labels, f.value) {
		if follow(at, path) == nil {
			t.Errorf("%s: there is no field %v in %v", name, path, f.path)
		}
	}
	if kind != "StateSet" {
		return
	}
	var states []string
	for _, state := range at.Enum {
		states = append(states, strings.Trim(string(state.Raw), `"`))
	}
	if !slices.Equal(states, f.states) {
		t.Errorf("%s: it can be %v, and is looked for in %v", name, states, f.states)
	}
}

func schemaOf(t *testing.T, plural string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(crdsDir, "cluster.k8s.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// metadata has the fields of metadata that are shown: CRDs do not say them.
var metadata = &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
	"name": {}, "namespace": {}, "creationTimestamp": {}, "deletionTimestamp": {},
	"ownerReferences": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"kind": {}, "name": {}},
	}}},
}}

// follow returns what a path leads to, through the items of lists; nil for nothing.
func follow(from *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	for i, name := range path {
		if from.Items != nil {
			from = from.Items.Schema
		}
		next, isThere := from.Properties[name]
		if !isThere {
			return nil
		}
		from = &next
		if i == 0 && name == "metadata" {
			from = metadata
		}
	}
	return from
}
