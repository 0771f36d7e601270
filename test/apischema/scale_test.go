package apischema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestScale scales by /scale, as `kubectl scale`, a HorizontalPodAutoscaler and
// cluster-autoscaler do, and reads there what they read.
func TestScale(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	key := types.NamespacedName{Namespace: u.namespace, Name: "nodes"}
	u.do(deploymentManifest, "apply", "-f", "-")
	u.do(setManifest, "apply", "-f", "-")

	var md clusterv1alpha1.MachineDeployment
	u.get(key, &md)
	md.Status.Replicas, md.Status.Selector = 2, "group=nodes"
	u.putStatus(&md)
	var ms clusterv1alpha1.MachineSet
	u.get(key, &ms)
	ms.Status.Replicas, ms.Status.Selector = 2, "group=nodes"
	u.putStatus(&ms)

	for kind, resource := range map[string]string{"md": "machinedeployments", "ms": "machinesets"} {
		t.Run(resource, func(t *testing.T) {
			u := u.in(t)
			u.do("", "scale", kind+"/nodes", "--replicas=5")
			if got := u.do("", "get", kind+"/nodes", "-o", "jsonpath={.spec.replicas}"); got != "5" {
				t.Errorf("spec.replicas after scaling to 5: %s", got)
			}
			var scale autoscalingv1.Scale
			raw := u.do("", "get", "--raw", "/apis/cluster.k8s.io/v1alpha1/namespaces/"+u.namespace+"/"+resource+"/nodes/scale")
			if err := json.Unmarshal([]byte(raw), &scale); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(autoscalingv1.ScaleSpec{Replicas: 5}, scale.Spec); diff != "" {
				t.Errorf("scale spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(autoscalingv1.ScaleStatus{Replicas: 2, Selector: "group=nodes"}, scale.Status); diff != "" {
				t.Errorf("scale status (-want +got):\n%s", diff)
			}
			_, stderr, err := u.try("", "patch", kind+"/nodes", "--subresource=scale", "--type=merge", "--patch", `{"spec":{"replicas":-1}}`)
			if err == nil || !strings.Contains(stderr, "spec.replicas") {
				t.Errorf("scaling to -1: %v, %s", err, stderr)
			}
		})
	}
}

// get reads the object of that name.
func (u *user) get(key types.NamespacedName, object client.Object) {
	u.t.Helper()
	if err := u.server.client.Get(u.t.Context(), key, object); err != nil {
		u.t.Fatal(err)
	}
}

// putStatus writes the object's status, as its controller would.
func (u *user) putStatus(object client.Object) {
	u.t.Helper()
	if err := u.server.client.Status().Update(u.t.Context(), object); err != nil {
		u.t.Fatal(err)
	}
}

// A machine's address is its own: neither kubectl scale nor an autoscaler makes a second machine of
// its template.
func TestMachineWithAnAddressIsNotScaled(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(edited(t, deploymentManifest, edit{network, oneAddress}, edit{"spec.replicas", "1"}, edit{"spec.strategy.type", "Recreate"}), "apply", "-f", "-")
	_, stderr, err := u.try("", "scale", "md/nodes", "--replicas=2")
	if err == nil || !strings.Contains(stderr, "spec.replicas") || !strings.Contains(stderr, "network.cidr") {
		t.Errorf("scaling to 2: %v, %s", err, stderr)
	}
}
