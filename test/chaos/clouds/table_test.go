package clouds

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// Whoever adds a cloud to the stack is told to add it here.
func TestEveryCloudIsThere(t *testing.T) {
	for _, p := range stack.Providers() {
		if p.Name() == stack.QEMU().Name() {
			continue // its VMs take a minute to boot: too few rounds
		}
		c, known := Find(p.Name())
		if !known || c.Name() != p.Name() {
			t.Errorf("the cloud %s cannot be disturbed", p.Name())
		}
	}
	if _, known := Find("nowhere"); known {
		t.Error("there is a cloud nowhere")
	}
}

func TestMachinesAreToldApartByTheirTemplates(t *testing.T) {
	for _, c := range All() {
		t.Run(c.Name(), func(t *testing.T) {
			if len(c.Templates) != plan.Templates {
				t.Fatalf("there are %d templates, and plans know %d", len(c.Templates), plan.Templates)
			}
			for n, template := range c.Templates {
				if !json.Valid([]byte(template.Spec)) {
					t.Errorf("template %d is no JSON: %s", n, template.Spec)
				}
				m := &clusterv1alpha1.Machine{}
				m.Spec.Versions.Kubelet = template.Kubelet
				if diff := cmp.Diff(template.Resources, c.Resources(m)); diff != "" {
					t.Errorf("template %d is taken for another one (-want +got):\n%s", n, diff)
				}
				if template.Resources["vm"] != 1 {
					t.Errorf("template %d has %d VMs", n, template.Resources["vm"])
				}
			}
			if got := c.Resources(&clusterv1alpha1.Machine{}); got != nil {
				t.Errorf("a machine of no template has %v", got)
			}
		})
	}
}
